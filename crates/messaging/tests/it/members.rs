//! Two members of one group.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use messaging::{ApplyError, ConsumeMode, Consumer, ConsumerOptions, Producer, Received, Record};
use rdkafka::{
    ClientConfig, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(20);
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
const PARTITIONS: i32 = 6;
/// So many keys that each partition has some.
const ROUND: i64 = 120;

fn options(topic: &str) -> ConsumerOptions {
    ConsumerOptions {
        group: format!("{topic}-group"),
        topics: vec![topic.to_owned()],
        batch_max_records: 10,
        batch_wait_ms: 5,
        dead_letter_aggregates_wait: false,
    }
}

/// A record for each key.
async fn produce(topic: &str) {
    let mut producer = Producer::connect(&testkit::kafka(), "test", TIMEOUT).await.unwrap();
    let keys: Vec<String> = (0..ROUND).map(|n| format!("key-{n}")).collect();
    let batch: Vec<Record<'_>> = keys
        .iter()
        .map(|key| Record { topic, key: key.as_bytes(), payload: b"{}", headers: Vec::new() })
        .collect();
    let outcome = producer.send(&batch, Instant::now() + TIMEOUT).await;
    assert_eq!(outcome.acks.iter().flatten().count(), keys.len());
}

/// A member that counts what it applies in `seen`.
fn member(topic: &str, seen: &Arc<Mutex<i64>>, shutdown: &CancellationToken) -> JoinHandle<()> {
    let consumer = Consumer::new(&testkit::kafka(), &options(topic), "tester").unwrap();
    let (seen, shutdown) = (Arc::clone(seen), shutdown.clone());
    tokio::spawn(async move {
        let decode = |_: &Received| Ok::<_, String>(());
        let apply = |batch: Vec<Arc<()>>| {
            *seen.lock().unwrap() += batch.len() as i64;
            std::future::ready(Ok(Vec::new()))
        };
        let gave_up = |_: Received| std::future::ready(Ok::<(), ApplyError>(()));
        consumer.run(decode, apply, gave_up, ConsumeMode::Forever, shutdown).await.unwrap();
    })
}

/// Asks for the group's offsets, without being a member.
#[derive(Clone)]
struct Group {
    topic: String,
    client: Arc<BaseConsumer>,
}

impl Group {
    fn of(topic: &str) -> Self {
        let client = ClientConfig::new()
            .set("bootstrap.servers", testkit::kafka().brokers)
            .set("group.id", options(topic).group)
            .create()
            .unwrap();
        Self { topic: topic.to_owned(), client: Arc::new(client) }
    }

    /// By partition; 0 where there is none, or nobody knows yet.
    async fn committed(&self) -> Vec<i64> {
        let Self { topic, client } = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let mut list = TopicPartitionList::new();
            list.add_partition_range(&topic, 0, PARTITIONS - 1);
            let found = client.committed_offsets(list, ASK_TIMEOUT).unwrap_or_default();
            found.elements().iter().map(|one| one.offset().to_raw().unwrap_or_default().max(0)).collect()
        });
        asked.await.unwrap()
    }

    /// Waits until all that was produced is committed.
    async fn reads_all(&self, produced: i64, what: &str) {
        testkit::until(what, async || (self.committed().await.iter().sum::<i64>() == produced).then_some(()))
            .await;
    }
}

/// One that comes takes over some partitions, and goes on from where the other was. One that leaves commits nothing for
/// partitions that it had once: the other is further there.
#[tokio::test]
async fn a_member_that_leaves_takes_no_offset_of_the_other_back() {
    let topic = testkit::topic(&testkit::kafka(), Some("tester")).await;
    let group = Group::of(&topic);
    let (seen_first, seen_second) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (end_first, end_second) = (CancellationToken::new(), CancellationToken::new());
    let mut produced = ROUND;
    produce(&topic).await;
    let first = member(&topic, &seen_first, &end_first);
    group.reads_all(produced, "the first member, alone").await;

    let second = member(&topic, &seen_second, &end_second);
    while *seen_second.lock().unwrap() == 0 {
        produce(&topic).await;
        produced += ROUND;
        group.reads_all(produced, "both members").await;
    }
    end_first.cancel();
    first.await.unwrap();
    assert_eq!(group.committed().await.iter().sum::<i64>(), produced, "the first took offsets back");
    produce(&topic).await;
    produced += ROUND;
    group.reads_all(produced, "the second member, alone").await;
    end_second.cancel();
    second.await.unwrap();
    assert_eq!(group.committed().await.iter().sum::<i64>(), produced);
    let seen = *seen_first.lock().unwrap() + *seen_second.lock().unwrap();
    assert!(seen >= produced, "{seen} of {produced} were applied");
}
