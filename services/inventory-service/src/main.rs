//! Start and end of inventory-service.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use clap::{Parser, Subcommand};
use inventory_service::{Options, migrations, serve, settings};
use messaging::Tally;

/// Sets stock aside for orders, exactly once each in effect, however often an order's event is delivered.
///
/// Settings: built-in defaults, then --config, then environment variables like BREW__DATABASE__URL and
/// BREW__KAFKA__BROKERS.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// A TOML file with settings.
    #[arg(long, env = "BREW_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Stop when the topics are read to their end.
    #[arg(long)]
    exit_when_idle: bool,
    /// Print one INSERT or DUP line for each event, and the sums at the end.
    #[arg(long)]
    print_records: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Consume until SIGTERM (the default).
    Serve,
    /// Bring the database to this version's schema, then end.
    Migrate,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let settings = settings::load(args.config.as_deref())?;
    let telemetry = telemetry::init("inventory-service")?;
    runtime::fault::arm_from_env()?;
    let shutdown = runtime::shutdown_token().context("signal handlers")?;

    let end = if matches!(args.command, Some(Command::Migrate)) {
        let db = database::connect(&settings.database).await?;
        database::migrate(&db, migrations()).await.context("migrate")
    } else {
        let options = Options { exit_when_idle: args.exit_when_idle, print_records: args.print_records };
        serve(settings, options, Arc::new(Tally::default()), shutdown).await.map_err(Into::into)
    };

    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    end
}
