//! Start and end of payment-gateway.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use payment_gateway::{migrations, serve, settings};
use tokio::net::TcpListener;

/// A sandbox of an outside payment provider, with books of its own and misbehaviour on command (by token or by
/// setting).
///
/// Settings: built-in defaults, then --config, then environment variables like BREW__DATABASE__URL.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// A TOML file with settings.
    #[arg(long, env = "BREW_CONFIG", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve HTTP until SIGTERM (the default).
    Serve,
    /// Bring the database to this version's schema, then end.
    Migrate,
    /// Wait until the database has this version's schema, then end.
    AwaitSchema,
    /// Ask this service's own admin port whether it is ready, then end: for containers.
    Healthcheck,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let settings = settings::load(args.config.as_deref())?;
    let telemetry = telemetry::init("payment-gateway")?;
    runtime::fault::arm_from_env()?;
    let shutdown = runtime::shutdown_token().context("signal handlers")?;

    let end = match args.command.unwrap_or(Command::Serve) {
        Command::Migrate => database::migrate_at(&settings.database, migrations()).await.context("migrate"),
        Command::AwaitSchema => {
            database::await_schema(&settings.database, &migrations()).await.map_err(Into::into)
        }
        Command::Healthcheck => runtime::healthcheck(settings.admin.address).await.map_err(Into::into),
        Command::Serve => {
            let address = settings.http.address;
            let listener = TcpListener::bind(address).await.with_context(|| format!("bind {address}"))?;
            serve(settings, listener, shutdown).await.map_err(Into::into)
        }
    };

    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    end
}
