//! The command line of inventory-service.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Sets stock aside for orders, exactly once each in effect, however often an order's event is delivered.
///
/// Settings: built-in defaults, then --config, then environment variables like BREW__DATABASE__URL and
/// BREW__KAFKA__BROKERS.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    /// A TOML file with settings.
    #[arg(long, env = "BREW_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Stop when the topics are read to their end.
    #[arg(long)]
    pub(crate) exit_when_idle: bool,
    /// Print one INSERT or DUP line for each event, and the sums at the end.
    #[arg(long)]
    pub(crate) print_records: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Consume until SIGTERM (the default).
    Serve,
    /// Bring the database to this version's schema, then end.
    Migrate,
    /// Wait until the database has this version's schema, then end.
    AwaitSchema,
    /// Ask this service's own admin port whether it is ready, then end: for containers.
    Healthcheck,
}
