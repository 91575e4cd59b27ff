//! Start and end of outbox-publisher.

mod args;

use anyhow::Context;
use args::{Args, Command};
use clap::Parser;
use outbox_publisher::{Options, await_schema, migrate, publish, settings};

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
        Some(Command::AwaitSchema) => await_schema(settings).await,
        Some(Command::Healthcheck) => runtime::healthcheck(settings.admin.address).await.map_err(Into::into),
        None => publish(settings, options, shutdown).await,
    };

    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    Ok(end?)
}
