//! Start and end of inventory-service.

mod args;

use std::sync::Arc;

use anyhow::Context;
use args::{Args, Command};
use clap::Parser;
use inventory_service::{Options, migrations, serve, settings};
use messaging::Tally;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let settings = settings::load(args.config.as_deref())?;
    let telemetry = telemetry::init("inventory-service")?;
    runtime::fault::arm_from_env()?;
    let shutdown = runtime::shutdown_token().context("signal handlers")?;

    let options = Options { exit_when_idle: args.exit_when_idle, print_records: args.print_records };
    let end = match args.command.unwrap_or(Command::Serve) {
        Command::Migrate => database::migrate_at(&settings.database, migrations()).await.context("migrate"),
        Command::AwaitSchema => {
            database::await_schema(&settings.database, &migrations()).await.map_err(Into::into)
        }
        Command::Healthcheck => runtime::healthcheck(settings.admin.address).await.map_err(Into::into),
        Command::Serve => {
            serve(settings, options, Arc::new(Tally::default()), shutdown).await.map_err(Into::into)
        }
    };

    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    end
}
