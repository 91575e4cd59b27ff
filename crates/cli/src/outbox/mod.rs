//! What stands in the services' outboxes, and what a person can do about it.

mod explain;
mod parked;
mod selftest;
mod status;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use tokio_postgres::Client;

use crate::{
    lab,
    local::{Profile, State},
};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// How many rows wait, for how long, and how many are published, parked and discarded, in each outbox.
    Status {
        #[command(flatten)]
        profile: Profile,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// List the rows that cannot be sent: parked ones, and those that wait for another try.
    Parked {
        #[command(flatten)]
        which: Which,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Try rows that cannot be sent again, now. Their aggregates go on when they are sent.
    Redrive(parked::Decision),
    /// Leave parked rows where they are, and let their aggregates go on without them.
    SkipHead(parked::Decision),
    /// Give rows that cannot be sent up for good, and let their aggregates go on without them.
    Discard(parked::Decision),
    /// Say where a row stands, what it waits for, and what to do.
    Explain {
        #[command(flatten)]
        which: Which,
        /// The row's id.
        outbox_id: i64,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Stop publishing an outbox; what is under way is ended first. Events wait, and none is lost.
    Pause(parked::Why),
    /// Go on publishing.
    Resume(parked::Why),
    /// Check an outbox, and a program that writes to it, against the contract (docs/writers.md).
    ///
    /// For a database of your own, in which no publisher runs: the writer's rows are deleted again, and the table has a
    /// trigger more for as long as it is run.
    #[command(
        after_help = "Example: brew outbox selftest --url postgres://127.0.0.1/shop -- python3 my_writer.py"
    )]
    Selftest(selftest::Args),
}

/// One service's outbox.
#[derive(Args)]
pub(crate) struct Which {
    #[command(flatten)]
    profile: Profile,
    /// Whose outbox.
    #[arg(long, value_enum, default_value_t = Service::Orders)]
    of: Service,
    /// An outbox in this database instead (postgres://user:password@host:port/name).
    #[arg(long, env = "BREW_OUTBOX_URL", hide_env_values = true)]
    url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Service {
    #[value(name = "order-service")]
    Orders,
    #[value(name = "inventory-service")]
    Inventory,
    #[value(name = "payment-service")]
    Payments,
}

impl Service {
    const ALL: [Self; 3] = [Self::Orders, Self::Inventory, Self::Payments];

    fn name(self) -> &'static str {
        match self {
            Self::Orders => "order-service",
            Self::Inventory => "inventory-service",
            Self::Payments => "payment-service",
        }
    }

    async fn open(self, profile: &Profile) -> anyhow::Result<Client> {
        let database = match self {
            Self::Orders => lab::ORDERS,
            Self::Inventory => lab::INVENTORY,
            Self::Payments => lab::PAYMENTS,
        };
        lab::open(&State::running(profile)?, database).await
    }
}

impl Which {
    async fn open(&self) -> anyhow::Result<Client> {
        match &self.url {
            Some(url) => lab::connect(url).await.context("connect to the outbox (--url)"),
            None => self.of.open(&self.profile).await,
        }
    }
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    use ::outbox::Action;
    match command {
        Command::Status { profile, json } => status::run(&profile, json).await,
        Command::Parked { which, json } => parked::list(&which, json).await,
        Command::Redrive(decision) => parked::decide(Action::Redrive, decision).await,
        Command::SkipHead(decision) => parked::decide(Action::SkipHead, decision).await,
        Command::Discard(decision) => parked::decide(Action::Discard, decision).await,
        Command::Explain { which, outbox_id, json } => explain::run(&which, outbox_id, json).await,
        Command::Pause(why) => parked::pause(true, &why).await,
        Command::Resume(why) => parked::pause(false, &why).await,
        Command::Selftest(args) => selftest::run(&args).await,
    }
}
