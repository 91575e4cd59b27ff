//! Records that consumers could not read or apply, and what a person can do about them.

mod decide;
mod look;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use events::{Place, topic};
use inbox::{decided, waiting};
use messaging::{KafkaOptions, Letter, dead_letters};
use tokio_postgres::Client;

use crate::{
    lab,
    local::{Profile, State},
};

/// For reading a dead letter topic whole.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the dead letters about which nobody has decided yet.
    List {
        #[command(flatten)]
        which: Which,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Show one dead letter whole: reason, headers and payload.
    Show {
        #[command(flatten)]
        profile: Profile,
        /// The dead letter topic.
        topic: String,
        /// Where it stands in it, as `list` says: partition:offset.
        at: String,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Put records back to the topics that they came from, in their order. Their consumer sees them again, and applies
    /// those that it has not applied.
    Redrive(decide::Decision),
    /// Give records up for good, and let their aggregates go on without them.
    Discard(decide::Decision),
}

/// Whose dead letters.
#[derive(Args)]
pub(crate) struct Which {
    #[command(flatten)]
    profile: Profile,
    /// One consumer's only, for example inventory-service.
    #[arg(long)]
    of: Option<String>,
    /// One dead letter topic only, for example brew.orders.v1.inventory-service.dlq.
    #[arg(long)]
    topic: Option<String>,
}

/// A dead letter topic, its consumer's database, and what there is in both.
struct Tray {
    topic: String,
    consumer: &'static str,
    client: Client,
    letters: Vec<Letter>,
    /// How many dead letters an aggregate waits behind.
    waiting: BTreeMap<String, i64>,
}

fn kafka(profile: &Profile) -> anyhow::Result<KafkaOptions> {
    Ok(lab::kafka_options(State::running(profile)?.brokers()?))
}

impl Which {
    /// The dead letter topics that are asked for, read whole.
    async fn open(&self) -> anyhow::Result<Vec<Tray>> {
        let state = State::running(&self.profile)?;
        let kafka = kafka(&self.profile)?;
        let mut trays = Vec::new();
        for (events, consumer) in lab::CONSUMERS {
            let topic = topic::dead_letter(events, consumer);
            let asked = self.of.as_deref().is_none_or(|of| of == consumer)
                && self.topic.as_deref().is_none_or(|asked| asked == topic);
            if !asked {
                continue;
            }
            let client = lab::open(&state, database(consumer)?).await?;
            let settled = decided(&client, &topic).await.context("read decisions")?;
            let letters = dead_letters(&kafka, &topic, &settled, TIMEOUT).await?;
            let waiting = waiting(&client, consumer, events).await?.into_iter().collect();
            trays.push(Tray { topic, consumer, client, letters, waiting });
        }
        if trays.is_empty() {
            let known = lab::CONSUMERS.map(|(events, consumer)| topic::dead_letter(events, consumer));
            bail!("there is no such dead letter topic; there are {}", known.join(", "));
        }
        Ok(trays)
    }
}

fn database(consumer: &str) -> anyhow::Result<&'static str> {
    match consumer {
        "order-service" => Ok(lab::ORDERS),
        "inventory-service" => Ok(lab::INVENTORY),
        "payment-service" => Ok(lab::PAYMENTS),
        other => bail!("the database of {other} is not known"),
    }
}

/// `partition:offset`, as people write where a letter stands.
fn spot(place: &Place) -> String {
    format!("{}:{}", place.partition, place.offset)
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { which, json } => look::list(&which, json).await,
        Command::Show { profile, topic, at, json } => look::show(&profile, &topic, &at, json).await,
        Command::Redrive(decision) => decide::redrive(decision).await,
        Command::Discard(decision) => decide::discard(decision).await,
    }
}
