//! The second half: the whole shop, with orders that end in every way, and a publisher killed among them.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{
    lab,
    local::State,
    output::note,
    shop::{self, Ordered},
    verify::{Finding, Patience, at_rest},
};

use super::Story;

/// How long the shop may take to come to rest.
const REST: Patience = Patience { whole: Duration::from_secs(45), quiet: Duration::from_secs(45) };

/// The number of a publisher among the shop's processes.
const PUBLISHER: usize = 5;

struct Case {
    what: &'static str,
    lines: &'static [(&'static str, i32)],
    token: &'static str,
    end: &'static str,
    proves: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        what: "a latte and a croissant",
        lines: &[("latte", 1), ("croissant", 1)],
        token: "tok_good",
        end: "completed",
        proves: "both answers good: captured and committed",
    },
    Case {
        what: "six panettoni, of five",
        lines: &[("espresso", 1), ("panettone", 6)],
        token: "tok_good",
        end: "cancelled (out_of_stock)",
        proves: "no stock: the money is let go",
    },
    Case {
        what: "a card that is declined",
        lines: &[("mocha", 2)],
        token: "tok_declined",
        end: "cancelled (payment_declined)",
        proves: "no money: the stock goes back",
    },
    Case {
        what: "a provider that charges and never replies",
        lines: &[("flat-white", 1)],
        token: "tok_timeout_once",
        end: "completed",
        proves: "same key, same bytes: charged once",
    },
    Case {
        what: "a provider that charges and says 500",
        lines: &[("americano", 3)],
        token: "tok_500_after_once",
        end: "completed",
        proves: "the same",
    },
    Case {
        what: "a hold that cannot be captured",
        lines: &[("cappuccino", 1)],
        token: "tok_capture_declined",
        end: "cancelled (capture_failed)",
        proves: "undone after it was confirmed",
    },
];

/// On a terminal, a line for each order that changes while it goes its way; elsewhere a line for each change.
struct Live {
    screen: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Live {
    fn new() -> anyhow::Result<Self> {
        let screen = MultiProgress::new();
        let style = ProgressStyle::with_template("  {spinner} {prefix:42} {msg}")?;
        let rows = CASES.iter().map(|case| {
            let row = screen.add(ProgressBar::new_spinner().with_style(style.clone()).with_prefix(case.what));
            row.enable_steady_tick(Duration::from_millis(100));
            row
        });
        let rows = rows.collect();
        Ok(Self { screen, rows })
    }

    fn tell(&self, row: &ProgressBar, case: &Case, now: &Ordered) {
        let text = format!("{:<10} {:<28} {:>5.1} s", now.order_id, now.end(), now.took.as_secs_f32());
        if self.screen.is_hidden() {
            note(format_args!("    {:42} {text}", case.what));
        } else {
            row.set_message(text);
        }
    }

    fn clear(&self) {
        for row in &self.rows {
            row.finish_and_clear();
        }
    }
}

/// Places an order of each case at once, and watches each to its end.
pub(super) async fn place_all(order_service: &str) -> anyhow::Result<Vec<Ordered>> {
    let live = Live::new()?;
    let orders = CASES.iter().zip(&live.rows).map(|(case, row)| {
        shop::place_and_watch(order_service, case.lines, case.token, |now| live.tell(row, case, now))
    });
    let orders = futures::future::try_join_all(orders).await;
    live.clear();
    orders
}

pub(super) fn tell_ends(orders: &[Ordered], story: &mut Story) {
    for (case, ordered) in CASES.iter().zip(orders) {
        let did = format!("{}: {} ({:.1} s)", ordered.order_id, case.what, ordered.took.as_secs_f32());
        story.tell(did, ordered.end(), &case.end.to_owned(), case.proves);
    }
}

/// What an independent look at everything found.
pub(super) async fn check_all(state: &State, story: &mut Story) -> anyhow::Result<Vec<Finding>> {
    let (_, findings) = at_rest(state, REST).await?;
    let broken = findings.iter().filter(|finding| !finding.holds()).count();
    story.tell("read every database, topic and book", broken, &0, "stock and money add up (below)");
    Ok(findings)
}

/// Opens the shop, tells how each order ended, and returns what an independent look at everything found.
pub(super) async fn tell(state: &State, story: &mut Story) -> anyhow::Result<Vec<Finding>> {
    note("  opening the shop: five services, two publishers");
    let mut shop = shop::open(state, 0).await?;
    let address = format!("http://{}", shop.orders);
    let (orders, killed) = tokio::join!(place_all(&address), shop.kill(PUBLISHER));
    let orders = orders?;
    story.tell(
        "kill one of two publishers meanwhile",
        killed?,
        &"outbox-publisher",
        "the other takes its shards",
    );
    tell_ends(&orders, story);
    let findings = check_all(state, story).await?;
    shop.close().await?;
    let left = lab::outbox_pending(state).await?;
    story.tell("count pending rows", left, &0, "nothing is left over");
    Ok(findings)
}
