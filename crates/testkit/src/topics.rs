//! Topics for one test.

use std::time::Duration;

use messaging::{
    KafkaOptions, Received,
    admin::{self, TopicSpec},
    read_all,
};
use uuid::Uuid;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The real Kafka that `make test` started.
///
/// # Panics
/// Outside of `make test`.
#[must_use]
pub fn kafka() -> KafkaOptions {
    KafkaOptions { brokers: crate::variable("BREW_TEST_KAFKA"), max_message_bytes: 1_000_000, partitions: 6 }
}

/// Makes a topic that no other test knows, with `options.partitions`, and its dead letter topic for `consumer`
/// if one is named.
///
/// # Panics
/// When Kafka refuses.
pub async fn topic(options: &KafkaOptions, consumer: Option<&str>) -> String {
    let name = format!("test.{}", Uuid::new_v4().simple());
    let mut specs = vec![spec(options, name.clone())];
    if let Some(consumer) = consumer {
        specs.push(spec(options, events::topic::dead_letter(&name, consumer)).of_dead_letters());
    }
    admin::create(options, &specs, TIMEOUT).await.unwrap();
    name
}

/// Makes a topic of this name, with `options.partitions`.
///
/// # Panics
/// When Kafka refuses.
pub async fn make_topic(options: &KafkaOptions, name: &str) {
    admin::create(options, &[spec(options, name.to_owned())], TIMEOUT).await.unwrap();
}

/// Makes the topic in which exactly-once publishers of the outbox `source` say what they have sent.
///
/// # Panics
/// When Kafka refuses.
pub async fn progress_topic(options: &KafkaOptions, source: &str) {
    let partitions = events::topic::PROGRESS_PARTITIONS;
    let spec = spec(options, events::topic::progress(source));
    admin::create(options, &[TopicSpec { partitions, compacted: true, ..spec }], TIMEOUT).await.unwrap();
}

/// A topic with two copies of each partition, both of which acknowledge, for a cluster of two brokers.
///
/// # Panics
/// When Kafka refuses.
pub async fn topic_on_two(options: &KafkaOptions) -> String {
    let name = format!("test.{}", Uuid::new_v4().simple());
    let spec = TopicSpec { replication: 2, min_in_sync: 2, ..spec(options, name.clone()) };
    admin::create(options, &[spec], TIMEOUT).await.unwrap();
    name
}

fn spec(options: &KafkaOptions, name: String) -> TopicSpec {
    TopicSpec {
        name,
        partitions: options.partitions,
        replication: 1,
        min_in_sync: 1,
        retention_ms: 3_600_000,
        extra_bytes: 0,
        compacted: false,
    }
}

/// Every record of a topic.
///
/// # Panics
/// When Kafka does not answer.
pub async fn read(topic: &str) -> Vec<Received> {
    read_all(&kafka(), topic, TIMEOUT).await.unwrap()
}
