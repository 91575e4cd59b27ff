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
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let settings = settings::load(args.config.as_deref())?;
    let telemetry = telemetry::init("payment-gateway")?;
    runtime::fault::arm_from_env()?;
    let shutdown = runtime::shutdown_token().context("signal handlers")?;

    let end = match args.command.unwrap_or(Command::Serve) {
        Command::Migrate => {
            let db = database::connect(&settings.database).await?;
            database::migrate(&db, migrations()).await.context("migrate")
        }
        Command::Serve => {
            let address = settings.http.address;
            let listener = TcpListener::bind(address).await.with_context(|| format!("bind {address}"))?;
            serve(settings, listener, shutdown).await.map_err(Into::into)
        }
    };

    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    end
}
