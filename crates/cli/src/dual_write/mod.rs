//! The two ways that fail, as a lesson: a writer that tells the database and Kafka one after the other, and dies
//! between the two; beside the outbox, which dies at the same place.

mod writer;

use std::{os::unix::process::ExitStatusExt, process::ExitCode};

use anyhow::{Context, bail};
use clap::ValueEnum;
use nix::sys::signal::Signal;

use crate::{
    lab,
    local::{self, Profile, State},
    output::{line, note, table, verdict},
    verify::{Evidence, check},
};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// First the event to Kafka, then the order to the database.
    KafkaFirst,
    /// First the order to the database, then the event to Kafka.
    DbFirst,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::KafkaFirst => "kafka-first",
            Self::DbFirst => "db-first",
        }
    }
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// In which order the two are told.
    way: Way,
    /// Be the writer: this database and these brokers, then die between the two steps.
    #[arg(long, hide = true, requires = "brokers")]
    database: Option<String>,
    #[arg(long, hide = true, requires = "database")]
    brokers: Option<String>,
}

/// What there is after a writer has died and everything else has run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sight {
    orders: usize,
    events: usize,
    reservations: usize,
    lost: usize,
    phantoms: usize,
}

impl Sight {
    fn since(self, before: Self) -> Self {
        Self {
            orders: self.orders - before.orders,
            events: self.events - before.events,
            reservations: self.reservations - before.reservations,
            lost: self.lost - before.lost,
            phantoms: self.phantoms - before.phantoms,
        }
    }
}

/// Exit codes: 0 the lesson came out as it is told, 1 it did not.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let (Some(database), Some(brokers)) = (&args.database, &args.brokers) {
        writer::write_and_die(args.way, database, brokers).await?;
    }
    let profile = Profile::named("dual-write");
    local::reset(&profile).await?;
    let told = tokio::select! {
        told = tell(&profile, args.way) => told,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    note("cleaning up ...");
    local::reset(&profile).await?;
    let (naive, examples, outbox) = told?;
    show(args.way, naive, &examples, outbox);
    let good = naive == wanted(args.way) && outbox == OUTBOX;
    let text = match (good, args.way) {
        (true, Way::KafkaFirst) => {
            "kafka-first sold what nobody ordered; the outbox lost nothing and invented nothing"
        }
        (true, Way::DbFirst) => "db-first forgot an order; the outbox lost nothing and invented nothing",
        (false, _) => "the lesson did not come out as it is told",
    };
    line(verdict(text, good));
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn wanted(way: Way) -> Sight {
    match way {
        Way::KafkaFirst => Sight { orders: 0, events: 1, reservations: 1, lost: 0, phantoms: 1 },
        Way::DbFirst => Sight { orders: 1, events: 0, reservations: 0, lost: 1, phantoms: 0 },
    }
}

/// The event is there twice, and has taken effect once.
const OUTBOX: Sight = Sight { orders: 1, events: 2, reservations: 1, lost: 0, phantoms: 0 };

async fn tell(profile: &Profile, way: Way) -> anyhow::Result<(Sight, Vec<String>, Sight)> {
    let state = local::up(profile).await?;
    lab::refuse_foreign_records(&state).await?;
    lab::db_init(&state).await?;
    lab::topic_create(&state).await?;
    note(format_args!("  {}: one order, and the writer dies between its two steps", way.name()));
    die_between(&state, way).await?;
    lab::run_consumer(&state, false).await?.must_succeed()?;
    let (naive, examples) = look(&state).await?;

    note("  outbox: one order, and the publisher dies between its two steps");
    lab::run_service(&state, 1).await?;
    if !lab::chaos_kill_publisher(&state, 1, &lab::Delivery::default(), false).await?.crashed {
        bail!("the publisher did not die");
    }
    lab::run_publisher(&state, None, &lab::Delivery::default(), false).await?.must_succeed()?;
    lab::run_consumer(&state, false).await?.must_succeed()?;
    let (both, _) = look(&state).await?;
    Ok((naive, examples, both.since(naive)))
}

/// The writer is a process of its own, so that it can really die.
async fn die_between(state: &State, way: Way) -> anyhow::Result<()> {
    let database = lab::database_url(state.postgres_url()?, lab::ORDERS)?;
    let end = tokio::process::Command::new(std::env::current_exe()?)
        .args(["dual-write", way.name(), "--database", &database, "--brokers", state.brokers()?])
        .status()
        .await
        .context("start the writer")?;
    if end.signal() == Some(Signal::SIGABRT as i32) { Ok(()) } else { bail!("the writer ended with {end}") }
}

/// Looks at everything; with what verify finds lost or invented.
async fn look(state: &State) -> anyhow::Result<(Sight, Vec<String>)> {
    let evidence = Evidence::gather(state).await?;
    let findings = check(&evidence);
    let broken = |name: &str| -> Vec<String> {
        let found = findings.iter().filter(|finding| finding.invariant.starts_with(name));
        found.flat_map(|finding| finding.broken.iter().cloned()).collect()
    };
    let (lost, phantoms) = (broken("no lost event"), broken("no phantom"));
    let sight = Sight {
        orders: evidence.orders.len(),
        events: evidence.records.iter().filter(|record| record.topic == events::topic::ORDERS).count(),
        reservations: evidence.reservations.len(),
        lost: lost.len(),
        phantoms: phantoms.len(),
    };
    Ok((sight, lost.into_iter().chain(phantoms).collect()))
}

fn show(way: Way, naive: Sight, examples: &[String], outbox: Sight) {
    let mut table = table();
    table.set_header(["dies between its steps", "orders", "events", "reservations", "lost", "phantom"]);
    for (name, sight) in [(way.name(), naive), ("outbox", outbox)] {
        let counts = [sight.orders, sight.events, sight.reservations, sight.lost, sight.phantoms];
        table.add_row(std::iter::once(name.to_owned()).chain(counts.iter().map(usize::to_string)));
    }
    line(table);
    for example in examples {
        line(format_args!("verify, after {}: {example}", way.name()));
    }
}
