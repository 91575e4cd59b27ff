//! The command line of outbox-publisher.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Moves outbox rows to Kafka: produce first, mark last, in order per aggregate. Run any number of replicas.
///
/// Settings: built-in defaults, then --config, then environment variables like BREW__SOURCES__ORDERS__URL.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    /// A TOML file with settings.
    #[arg(long, env = "BREW_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Stop when nothing is pending.
    #[arg(long)]
    pub(crate) exit_when_drained: bool,
    /// Rows a claim; overrides relay.batch_size.
    #[arg(long)]
    pub(crate) batch_size: Option<usize>,
    /// Print one PUB line for each record that the broker has acknowledged.
    #[arg(long)]
    pub(crate) print_records: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make the outbox's tables in every source, for services that do not do so, then end.
    Migrate {
        /// Names the outbox, in the `outbox-source` header of its records.
        #[arg(long)]
        name: String,
    },
    /// Wait until every source has this version's schema, then end.
    AwaitSchema,
    /// Ask this publisher's own admin port whether it is ready, then end: for containers.
    Healthcheck,
}
