//! Topics: making, counting, deleting.

use std::{
    collections::BTreeMap,
    ops::Range,
    time::{Duration, Instant},
};

use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode},
};

use crate::{Error, KafkaOptions, dead_letter::EXTRA_BYTES};

/// Before a partition without a leader is asked again.
const LEADER_PAUSE: Duration = Duration::from_millis(50);

/// A topic as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// How many partitions; frozen once made.
    pub partitions: usize,
    /// How many copies.
    pub replication: i32,
    /// How many of them must have a record before it is acknowledged, its leader's among them.
    pub min_in_sync: i32,
    /// How long records are kept.
    pub retention_ms: i64,
    /// Room on top of [`KafkaOptions::max_message_bytes`], in bytes.
    pub extra_bytes: usize,
    /// Whether the newest record of each key stays for ever; `retention_ms` then says how long all of them do.
    pub compacted: bool,
}

impl TopicSpec {
    /// The same for dead letters: with room for the reason beside a record that is itself as large as can be.
    #[must_use]
    pub fn of_dead_letters(self) -> Self {
        Self { extra_bytes: EXTRA_BYTES, ..self }
    }
}

/// What [`create`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It was not there.
    New,
    /// It was there, with the right number of partitions.
    Existed,
}

/// Makes the topics that are not there, and returns what was found for each. A broker that cannot make topics (the
/// embedded one) must have them.
///
/// # Errors
/// The broker is away or refuses; a topic is there with another number of partitions.
pub async fn create(
    options: &KafkaOptions,
    specs: &[TopicSpec],
    timeout: Duration,
) -> Result<Vec<Created>, Error> {
    let before = topics(options, timeout).await?;
    let missing: Vec<&TopicSpec> = specs.iter().filter(|spec| !before.contains_key(&spec.name)).collect();
    if !missing.is_empty() {
        make(options, &missing, timeout).await?;
    }
    let mut found = Vec::with_capacity(specs.len());
    for spec in specs {
        let partitions = appears(options, &spec.name, timeout).await?;
        if partitions != spec.partitions {
            let (topic, declared) = (spec.name.clone(), spec.partitions);
            return Err(Error::PartitionCount { topic, found: partitions, declared });
        }
        let existed = before.contains_key(&spec.name);
        found.push(if existed { Created::Existed } else { Created::New });
    }
    Ok(found)
}

/// Checks that each of `names` is there with the partitions that `options` declare: what is keyed by aggregate must
/// not be spread anew.
///
/// # Errors
/// The broker is away, a topic is not there, or it has another number of partitions.
pub async fn check(options: &KafkaOptions, names: &[String], timeout: Duration) -> Result<(), Error> {
    let found = topics(options, timeout).await?;
    for name in names {
        match found.get(name) {
            None => return Err(Error::NoTopic(name.clone())),
            Some(count) if *count != options.partitions => {
                let (topic, declared) = (name.clone(), options.partitions);
                return Err(Error::PartitionCount { topic, found: *count, declared });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

async fn make(options: &KafkaOptions, specs: &[&TopicSpec], timeout: Duration) -> Result<(), Error> {
    let limits: Vec<(String, String, String)> = specs
        .iter()
        .map(|spec| {
            let max_bytes = options.max_message_bytes + spec.extra_bytes;
            (spec.retention_ms.to_string(), max_bytes.to_string(), spec.min_in_sync.to_string())
        })
        .collect();
    let new: Vec<NewTopic<'_>> = specs
        .iter()
        .zip(&limits)
        .map(|(spec, (retention, max_bytes, min_in_sync))| {
            let partitions = i32::try_from(spec.partitions).unwrap_or(i32::MAX);
            let topic = NewTopic::new(&spec.name, partitions, TopicReplication::Fixed(spec.replication));
            let kept = if spec.compacted {
                topic.set("cleanup.policy", "compact").set("min.compaction.lag.ms", retention)
            } else {
                topic.set("retention.ms", retention)
            };
            kept.set("max.message.bytes", max_bytes).set("min.insync.replicas", min_in_sync)
        })
        .collect();
    let admin = admin_client(options)?;
    let results = admin
        .create_topics(&new, &AdminOptions::new().operation_timeout(Some(timeout)))
        .await
        .map_err(Error::kafka("make topics"))?;
    for result in results {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((_, code)) => {
                let source = rdkafka::error::KafkaError::AdminOp(code);
                return Err(Error::Kafka { context: "make a topic", source });
            }
        }
    }
    Ok(())
}

/// Waits until the broker tells of a topic that was just made.
async fn appears(options: &KafkaOptions, topic: &str, timeout: Duration) -> Result<usize, Error> {
    let deadline = tokio::time::Instant::now() + timeout;
    loop {
        if let Some(partitions) = topics(options, timeout).await?.get(topic) {
            return Ok(*partitions);
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Error::NoTopic(topic.to_owned()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Deletes those of `names` that are there.
///
/// # Errors
/// The broker is away or refuses.
pub async fn delete(options: &KafkaOptions, names: &[&str], timeout: Duration) -> Result<(), Error> {
    let admin = admin_client(options)?;
    let results = admin
        .delete_topics(names, &AdminOptions::new().operation_timeout(Some(timeout)))
        .await
        .map_err(Error::kafka("delete topics"))?;
    for result in results {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::UnknownTopicOrPartition)) => {}
            Err((_, code)) => {
                let source = rdkafka::error::KafkaError::AdminOp(code);
                return Err(Error::Kafka { context: "delete a topic", source });
            }
        }
    }
    Ok(())
}

/// Every topic, with its number of partitions.
///
/// # Errors
/// [`Error::BrokerAway`] after `timeout`.
pub async fn topics(options: &KafkaOptions, timeout: Duration) -> Result<BTreeMap<String, usize>, Error> {
    let options = options.clone();
    tokio::task::spawn_blocking(move || {
        let consumer = metadata_client(&options)?;
        let metadata =
            consumer.fetch_metadata(None, timeout).map_err(|_| Error::BrokerAway(options.brokers.clone()))?;
        Ok(metadata
            .topics()
            .iter()
            .filter(|topic| topic.error().is_none() && !topic.partitions().is_empty())
            .map(|topic| (topic.name().to_owned(), topic.partitions().len()))
            .collect())
    })
    .await?
}

/// First and next offset of each partition of `topic`, by partition number. A partition that has no leader just now, as
/// right after it was made, is asked again until `timeout`.
///
/// # Errors
/// The broker is away, or there is no such topic.
pub async fn offsets(
    options: &KafkaOptions,
    topic: &str,
    timeout: Duration,
) -> Result<Vec<Range<i64>>, Error> {
    let partitions = topics(options, timeout)
        .await?
        .get(topic)
        .copied()
        .ok_or_else(|| Error::NoTopic(topic.to_owned()))?;
    let deadline = Instant::now() + timeout;
    loop {
        let (options, topic) = (options.clone(), topic.to_owned());
        let asked =
            tokio::task::spawn_blocking(move || watermarks(&options, &topic, partitions, timeout)).await?;
        match asked {
            Err(Error::Kafka { source, .. }) if has_no_leader_yet(&source) && Instant::now() < deadline => {
                tokio::time::sleep(LEADER_PAUSE).await;
            }
            asked => return asked,
        }
    }
}

fn watermarks(
    options: &KafkaOptions,
    topic: &str,
    partitions: usize,
    timeout: Duration,
) -> Result<Vec<Range<i64>>, Error> {
    let consumer = metadata_client(options)?;
    (0..i32::try_from(partitions).unwrap_or(i32::MAX))
        .map(|partition| {
            let (low, high) = consumer
                .fetch_watermarks(topic, partition, timeout)
                .map_err(Error::kafka("ask for offsets"))?;
            Ok(low..high)
        })
        .collect()
}

/// A broker that has made a topic may not lead its partitions yet; so also while leaders change.
fn has_no_leader_yet(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::NotLeaderForPartition
                | RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::UnknownTopicOrPartition
        )
    )
}

pub(crate) fn admin_client(options: &KafkaOptions) -> Result<AdminClient<DefaultClientContext>, Error> {
    options.client("brew-admin").create().map_err(Error::kafka("make an admin client"))
}

fn metadata_client(options: &KafkaOptions) -> Result<BaseConsumer, Error> {
    options.client("brew-admin").create().map_err(Error::kafka("make a metadata client"))
}
