//! What the outbox, its relay and a consumer cost and reach, in one run with the ceilings of the machine.
//! docs/bench.md says how, and what the figures are worth.

mod backlog;
mod ceilings;
mod collector;
mod consumer;
mod drain;
mod ground;
mod judge;
mod latency;
mod meter;
mod place_order;
mod plot;
mod report;
mod running;
mod seed;
mod traced;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::ValueEnum;

use crate::output::{line, note};

use ceilings::{FetchAndMark, Produce};
use drain::Drain;
use ground::{Ground, Part};
use judge::Checked;
use report::{Figures, Rates};

/// Events that a publisher is warmed up with.
const WARMUP: u64 = 50_000;

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Drains, and the ceilings.
    Rates,
    /// Drains without and with tracing.
    Tracing,
    Latency,
    Consumer,
    PlaceOrder,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure this; all if not given. May be repeated.
    #[arg(long)]
    only: Vec<Measure>,
    /// Events a drain.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1000..=5_000_000))]
    events: u64,
    /// How many times each rate is measured; the table has the median.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// For how long latency is measured, with and without NOTIFY each, after a warm-up of at most 3 s.
    #[arg(long, default_value = "20s", value_parser = humantime::parse_duration)]
    latency: Duration,
    /// Also drain a backlog of so many events at once; ten million take 30 GB of disk.
    #[arg(long)]
    backlog: Option<u64>,
    /// Hold a snapshot of Postgres while the backlog is drained.
    #[arg(long, requires = "backlog")]
    held_snapshot: bool,
    /// Before each measured part, wait at most so long for the rest of the machine to be quiet.
    #[arg(long, default_value = "5s", value_parser = humantime::parse_duration)]
    quiet_wait: Duration,
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
    /// Where bench.json and bench.svg go.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
}

/// Exit codes: 0 every part was correct, else 1, and that part has no figures.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let ground = Ground::up().await?;
    let measured = tokio::select! {
        measured = measure(&ground, &args) => measured,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    note("cleaning up ...");
    ground.clear().await?;
    let figures = measured?;

    std::fs::create_dir_all(&args.out).with_context(|| format!("make {}", args.out.display()))?;
    let json = report::json(&figures)?;
    std::fs::write(args.out.join("bench.json"), &json).context("write bench.json")?;
    plot::draw(&figures, &args.out.join("bench.svg"))?;
    if args.json {
        line(json);
    } else {
        report::show(&figures);
    }
    note(format_args!("bench.json and bench.svg are in {}", args.out.display()));
    Ok(if figures.hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    fn wants(&self, measure: Measure) -> bool {
        self.only.is_empty() || self.only.contains(&measure)
    }
}

async fn measure(ground: &Ground, args: &Args) -> anyhow::Result<Figures> {
    if cfg!(debug_assertions) {
        note("this is a debug build: its figures say nothing (`make bench` makes the other)");
    }
    let mut figures = Figures::of(ground.setting().await?);
    note("warming up the broker ...");
    let produce = Produce::open(ground, WARMUP.min(args.events)).await?;
    if args.wants(Measure::Rates) {
        note("rates ...");
        figures.rates = Some(rates(ground, args, produce).await?);
    } else {
        produce.close().await;
    }
    if args.wants(Measure::Tracing) {
        note("tracing ...");
        figures.traced = traced::measure(ground, args).await?;
    }
    if args.wants(Measure::Latency) {
        // Whichever came first was slower by half: the broker had not compiled yet what small requests take.
        note("latency, not measured yet ...");
        latency::measure(ground, args, Part::Unmeasured).await?;
        note("latency with NOTIFY ...");
        figures.latency.push(latency::measure(ground, args, Part::Notified).await?);
        note("latency without NOTIFY ...");
        figures.latency.push(latency::measure(ground, args, Part::Unnotified).await?);
    }
    if args.wants(Measure::Consumer) {
        note("consumer ...");
        figures.consumer = Some(consumer::measure(ground, args).await?);
    }
    if args.wants(Measure::PlaceOrder) {
        note("PlaceOrder ...");
        figures.place_order = Some(place_order::measure(ground, args).await?);
    }
    if let Some(events) = args.backlog {
        note("backlog ...");
        figures.backlog = Some(backlog::measure(ground, args, events).await?);
    }
    Ok(figures)
}

/// The drain and its ceilings, in turns, so that they have the same machine.
async fn rates(ground: &Ground, args: &Args, mut produce: Produce<'_>) -> anyhow::Result<Rates> {
    let mut fetch_and_mark = FetchAndMark::open(ground).await?;
    let mut drain = Drain::open(ground, Part::Drain, &[], WARMUP.min(args.events)).await?;
    for round in 1..=args.repeats {
        note(format_args!("  round {round} of {}", args.repeats));
        if !drain.round(args).await? {
            break;
        }
        fetch_and_mark.round(args).await?;
        produce.round(args).await?;
    }
    let (check, drained) = drain.close().await?;
    Ok(Rates {
        drain: Checked::new(check, drained),
        fetch_and_mark: fetch_and_mark.spans,
        produce: produce.close().await,
    })
}
