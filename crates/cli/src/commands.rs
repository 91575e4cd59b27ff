//! What `brew` can be asked.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    bench, demo, dlq, dual_write, end_offsets, lab, load, local, order, outbox, shop, stock, topics, trace,
    verify,
};

/// Brew at a terminal: orders, stock, outboxes, local infrastructure, the lab, the demo, the storm and the check of
/// everything.
#[derive(Parser)]
#[command(name = "brew", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Place, show, watch, list and cancel orders.
    Order(order::OrderArgs),
    /// One order's way through all services, as Jaeger has it.
    Trace(trace::Args),
    /// A shop with Jaeger, one order, and its trace; ends with the check of its shape.
    TraceDemo(trace::DemoArgs),
    /// Show what is on the shelf, or put more there.
    Stock(stock::StockArgs),
    /// Look at the services' outboxes.
    #[command(subcommand)]
    Outbox(outbox::Command),
    /// Look at records that consumers could not apply, and put them back.
    #[command(subcommand)]
    Dlq(dlq::Command),
    /// Make the topics that are not there: the job of a deployment.
    Topics(topics::Args),
    /// Do nothing until SIGTERM: for a pod in which commands are run.
    Wait,
    /// How many records each partition of each topic has had.
    EndOffsets(end_offsets::Args),
    /// Postgres and Kafka on this machine: with Docker where it runs, without where it does not.
    #[command(subcommand)]
    Local(local::Command),
    /// One step of the lab at a time, over the real services. Begin with `brew local up`.
    #[command(subcommand)]
    Lab(lab::Command),
    /// The whole story with a crash in the middle, on infrastructure of its own; ends with a verdict. On a stack that
    /// runs (--order-service): orders that end in every way, and the check of everything.
    Demo(demo::Args),
    /// The two ways that fail, each with a crash between its two steps, beside the outbox with the same crash.
    DualWrite(dual_write::Args),
    /// The whole shop, five services and two publishers, until interrupted; prints where it listens.
    Shop(shop::Args),
    /// A steady stream of orders, and a table of latencies.
    Load(load::Args),
    /// What the outbox, its relay and a consumer cost and reach beside the machine's ceilings, and whether all was
    /// correct.
    Bench(bench::Args),
    /// Many orders at once, with services killed and a provider that misbehaves; then verify.
    Storm(shop::StormArgs),
    /// Read every database, topic and book, and say whether all adds up.
    Verify(verify::Args),
    /// Print a shell's completions. Example: brew completions bash > /etc/bash_completion.d/brew
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Order(args) => order::run(args).await,
        Command::Trace(args) => trace::run(args).await,
        Command::TraceDemo(args) => trace::demo(args).await,
        Command::Stock(args) => stock::run(args).await,
        Command::Outbox(command) => outbox::run(command).await,
        Command::Dlq(command) => dlq::run(command).await,
        Command::Topics(args) => topics::run(args).await,
        Command::Wait => wait().await,
        Command::EndOffsets(args) => end_offsets::run(args).await,
        Command::Local(command) => local::run(command).await,
        Command::Lab(command) => lab::run(command).await,
        Command::Demo(args) => demo::run(args).await,
        Command::DualWrite(args) => dual_write::run(args).await,
        Command::Shop(args) => shop::run(args).await,
        Command::Load(args) => load::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Storm(args) => shop::storm(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "brew", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn wait() -> anyhow::Result<ExitCode> {
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = term.recv() => {}
        end = tokio::signal::ctrl_c() => end?,
    }
    Ok(ExitCode::SUCCESS)
}
