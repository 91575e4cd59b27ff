//! Start and end of outbox-publisher.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use outbox_publisher::{Options, migrate, publish, settings};

/// Moves outbox rows to Kafka: produce first, mark last, in order per aggregate. Run any number of replicas.
///
/// Settings: built-in defaults, then --config, then environment variables like BREW__SOURCES__ORDERS__URL.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// A TOML file with settings.
    #[arg(long, env = "BREW_CONFIG")]
    config: Option<PathBuf>,
    /// Stop when nothing is pending.
    #[arg(long)]
    exit_when_drained: bool,
    /// Rows a claim; overrides relay.batch_size.
    #[arg(long)]
    batch_size: Option<usize>,
    /// Print one PUB line for each record that the broker has acknowledged.
    #[arg(long)]
    print_records: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Make the outbox's tables in every source, for services that do not do so, then end.
    Migrate {
        /// Names the outbox, in the `outbox-source` header of its records.
        #[arg(long)]
        name: String,
    },
}

// One thread: workers mostly wait, and hopping between threads costs more than a second one brings.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut settings = settings::load(args.config.as_deref())?;
    settings.relay.batch_size = args.batch_size.unwrap_or(settings.relay.batch_size);
    let telemetry = telemetry::init("outbox-publisher")?;
    runtime::fault::arm_from_env()?;
    let shutdown = runtime::shutdown_token().context("signal handlers")?;

    let options = Options { exit_when_drained: args.exit_when_drained, print_records: args.print_records };
    let end = match args.command {
        Some(Command::Migrate { name }) => migrate(settings, &name).await,
        None => publish(settings, options, shutdown).await,
    };

    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    Ok(end?)
}
