//! The whole story, step by step: what was done, what was seen, what it proves.

mod saga;
mod stack;

use std::{process::ExitCode, time::Instant};

use anyhow::{Context, bail};
use comfy_table::ContentArrangement;

use crate::{
    lab,
    local::{self, Profile, State},
    output::{line, note, table, verdict},
    verify,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many orders.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Rows in the batch that the crash hits; at most as many as orders.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch_size: u32,
    /// Where the order-service of a stack that runs listens. Then nothing is brought up and nothing is killed; traces
    /// are looked at where JAEGER_URL is set, and all is verified where DATABASE_URL and KAFKA_BROKERS are.
    #[arg(long, env = "BREW_ORDER_SERVICE")]
    order_service: Option<String>,
}

struct Step {
    did: String,
    saw: String,
    proves: &'static str,
    good: bool,
}

/// The steps so far.
#[derive(Default)]
struct Story(Vec<Step>);

impl Story {
    /// `seen` must be `wanted`.
    fn tell<T: PartialEq + std::fmt::Display>(
        &mut self,
        did: impl Into<String>,
        seen: T,
        wanted: &T,
        proves: &'static str,
    ) {
        let (did, good) = (did.into(), seen == *wanted);
        let saw = if good { seen.to_string() } else { format!("{seen}, wanted {wanted}") };
        note(format_args!("  {did}: {saw}"));
        self.0.push(Step { did, saw, proves, good });
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(order_service) = &args.order_service {
        return stack::run(order_service).await;
    }
    if args.batch_size > args.count {
        bail!("--batch-size must not exceed --count");
    }
    let began = Instant::now();
    let profile = Profile::named("demo");
    // A demo that was interrupted may have left something.
    local::reset(&profile).await?;
    let told = tokio::select! {
        told = on_own_infrastructure(&profile, &args) => told,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    note("cleaning up ...");
    local::reset(&profile).await?;
    let (story, setting, findings) = told?;
    show(&story, &setting);
    verify::show(&findings);
    Ok(conclude(
        &story,
        "the crash left duplicates in Kafka and exactly one effect in the business; every order came to its end",
        began,
    ))
}

/// PASS if every step was good, and what that means.
fn conclude(story: &Story, meaning: &str, began: Instant) -> ExitCode {
    let good = story.0.iter().all(|step| step.good);
    let text =
        if good { format!("PASS: {meaning}") } else { "FAIL: see the steps marked with ✗".to_owned() };
    line(format_args!("{}  ({:.1} s)", verdict(&text, good), began.elapsed().as_secs_f32()));
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn on_own_infrastructure(
    profile: &Profile,
    args: &Args,
) -> anyhow::Result<(Story, Vec<String>, Vec<verify::Finding>)> {
    let state = local::up(profile).await?;
    lab::refuse_foreign_records(&state).await?;
    let mut story = Story::default();
    tell(&state, args, &mut story).await?;
    let findings = saga::tell(&state, &mut story).await?;
    Ok((story, state.describe(), findings))
}

async fn tell(state: &State, args: &Args, story: &mut Story) -> anyhow::Result<()> {
    let (count, batch) = (i64::from(args.count), i64::from(args.batch_size));
    lab::db_init(state).await?;
    lab::topic_create(state).await?;
    lab::run_service(state, args.count).await?;
    story.tell(
        format!("place {count} orders through gRPC; count orders"),
        lab::db_count(state).await?,
        &count,
        "orders are stored",
    );
    story.tell(
        "count outbox rows",
        lab::outbox_count(state).await?,
        &count,
        "each order and its event are one transaction",
    );
    story.tell(
        "count pending rows",
        lab::outbox_pending(state).await?,
        &count,
        "placing an order needs no Kafka",
    );

    let crash = lab::chaos_kill_publisher(state, args.batch_size, &lab::Delivery::default(), false).await?;
    let published = crash.starting_with("PUB ") as i64;
    let how = if crash.crashed && crash.starting_with("CRASH ") == 1 { "dead" } else { "alive" };
    story.tell(
        format!("kill a publisher after {batch} acks, before the mark"),
        format!("{published} sent, {how}"),
        &format!("{batch} sent, dead"),
        "the worst moment to die",
    );
    story.tell(
        "count pending rows",
        lab::outbox_pending(state).await?,
        &count,
        "nothing was marked that was not certain",
    );

    let run = lab::run_publisher(state, None, &lab::Delivery::default(), false).await?.must_succeed()?;
    story.tell(
        "run a publisher until nothing is pending",
        format!("{} sent", run.starting_with("PUB ")),
        &format!("{count} sent"),
        "no event is lost; the unmarked ones go again",
    );
    story.tell("count pending rows", lab::outbox_pending(state).await?, &0, "the outbox is drained");
    story.tell(
        "count records in Kafka",
        lab::end_offsets(state, events::topic::ORDERS).await?.iter().sum::<i64>(),
        &(count + batch),
        "at least once: the crash left duplicates",
    );

    let run = lab::run_consumer(state, false).await?.must_succeed()?;
    let sums = run.lines.last().cloned().context("the consumer printed nothing")?;
    story.tell(
        "run inventory-service over the topic",
        sums,
        &format!("processed={} inserted={count} skipped={batch}", count + batch),
        "each event takes effect once",
    );
    story.tell("count applied events", lab::dup_count(state).await?, &count, "exactly one effect an order");
    Ok(())
}

fn show(story: &Story, setting: &[String]) {
    let mut table = table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["", "step", "seen", "what it proves"]);
    for step in &story.0 {
        table.add_row([if step.good { "✓" } else { "✗" }, &step.did, &step.saw, step.proves]);
    }
    line("");
    setting.iter().for_each(line);
    line(table);
}
