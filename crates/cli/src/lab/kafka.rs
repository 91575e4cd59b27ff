//! The lab's topics.

use std::{collections::BTreeMap, time::Duration};

use anyhow::bail;
use events::topic;
use messaging::{
    KafkaOptions,
    admin::{self, Created, TopicSpec},
};

use crate::local::State;

/// As in every service's default settings.
const PARTITIONS: usize = 6;
const MAX_MESSAGE_BYTES: usize = 1_000_000;

const WEEK_MS: i64 = 7 * 24 * 3600 * 1000;
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than a transaction that its publisher has left open.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Consumers that have a dead letter topic, with the topic that they read.
pub(crate) const CONSUMERS: [(&str, &str); 4] = [
    (topic::ORDERS, "inventory-service"),
    (topic::ORDERS, "payment-service"),
    (topic::INVENTORY, "order-service"),
    (topic::PAYMENTS, "order-service"),
];

/// The names of Brew's outboxes.
const SOURCES: [&str; 3] = ["order-service", "inventory-service", "payment-service"];

/// Every topic of events, and of events that could not be applied, as it should be, with so many copies.
pub(crate) fn topic_specs(replication: i32) -> Vec<TopicSpec> {
    let events = topic::ALL.iter().map(|name| spec((*name).to_owned(), replication));
    let dead = CONSUMERS.iter().map(|(topic, consumer)| topic::dead_letter(topic, consumer));
    events.chain(dead.map(|name| spec(name, replication).of_dead_letters())).collect()
}

/// These, and where exactly-once publishers say what they have sent, one for each of Brew's outboxes.
fn all_specs(replication: i32) -> Vec<TopicSpec> {
    let partitions = topic::PROGRESS_PARTITIONS;
    let progress = |source| {
        let spec = spec(topic::progress(source), replication);
        TopicSpec { partitions, compacted: true, ..spec }
    };
    topic_specs(replication).into_iter().chain(SOURCES.map(progress)).collect()
}

fn spec(name: String, replication: i32) -> TopicSpec {
    TopicSpec {
        name,
        partitions: PARTITIONS,
        replication,
        // One copy may be away.
        min_in_sync: (replication - 1).max(1),
        retention_ms: WEEK_MS,
        extra_bytes: 0,
        compacted: false,
    }
}

pub(crate) async fn topic_create(state: &State) -> anyhow::Result<Vec<String>> {
    Ok(make_topics(state.brokers()?, 1).await?)
}

/// Makes the topics that are not there, and says of each what was found.
pub(crate) async fn make_topics(brokers: &str, replication: i32) -> Result<Vec<String>, messaging::Error> {
    let specs = all_specs(replication);
    let found = admin::create(&options(brokers), &specs, TIMEOUT).await?;
    let tell = |(spec, found): (&TopicSpec, Created)| {
        let what = match found {
            Created::New => "made",
            Created::Existed => "was there",
        };
        format!("{:<42} {} partitions, {what}", spec.name, spec.partitions)
    };
    Ok(specs.iter().zip(found).map(tell).collect())
}

/// How many records each partition of `topic` has had.
pub(crate) async fn end_offsets(state: &State, topic: &str) -> anyhow::Result<Vec<i64>> {
    let ranges = admin::offsets(&options(state.brokers()?), topic, TIMEOUT).await?;
    Ok(ranges.into_iter().map(|range| range.end).collect())
}

/// How many records a reader of what is committed meets in `topic`.
pub(crate) async fn committed_records(state: &State, topic: &str) -> anyhow::Result<u64> {
    let count = |all: &mut u64, _| *all += 1;
    Ok(messaging::fold(&options(state.brokers()?), topic, READ_TIMEOUT, 0, count).await?)
}

/// On a broker that is not ours, our topics may hold somebody's records; the counts would be wrong, and a clean-up
/// would delete them.
pub(crate) async fn refuse_foreign_records(state: &State) -> anyhow::Result<()> {
    let there = topics(state.brokers()?).await?.contains_key(topic::ORDERS);
    if there && end_offsets(state, topic::ORDERS).await?.iter().sum::<i64>() > 0 {
        bail!("topic {} has records; this needs a broker without", topic::ORDERS);
    }
    Ok(())
}

pub(crate) async fn topics(brokers: &str) -> anyhow::Result<BTreeMap<String, usize>> {
    Ok(admin::topics(&options(brokers), TIMEOUT).await?)
}

pub(crate) async fn delete_topics(brokers: &str) -> anyhow::Result<()> {
    let specs = all_specs(1);
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    Ok(admin::delete(&options(brokers), &names, TIMEOUT).await?)
}

pub(crate) fn options(brokers: &str) -> KafkaOptions {
    KafkaOptions { brokers: brokers.to_owned(), max_message_bytes: MAX_MESSAGE_BYTES, partitions: PARTITIONS }
}
