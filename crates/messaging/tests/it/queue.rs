//! A client whose queue is full (librdkafka #998, #4772).

use std::{collections::BTreeMap, time::Duration};

use messaging::{EmbeddedBroker, KafkaOptions, Producer, Record, RefusedReason};
use tokio::time::Instant;

const KEYS: usize = 5;

/// More than the client's queue takes while the broker answers slowly: what does not fit is refused, and of each key
/// all that follows, so that nothing overtakes it. The producer is as good as before.
#[tokio::test]
async fn what_the_queue_does_not_take_holds_back_its_key() {
    let broker = EmbeddedBroker::start(&[("t".to_owned(), 6)]).unwrap();
    broker.delay(Duration::from_millis(200)).unwrap();
    let options = KafkaOptions { brokers: broker.brokers(), max_message_bytes: 1_000_000, partitions: 6 };
    let mut producer = Producer::connect(&options, "test", Duration::from_secs(20)).await.unwrap();
    let keys: Vec<String> = (0..KEYS).map(|n| n.to_string()).collect();
    let record =
        |n: usize| Record { topic: "t", key: keys[n % KEYS].as_bytes(), payload: b"x", headers: Vec::new() };
    let batch: Vec<Record<'_>> = (0..150_000).map(record).collect();
    let outcome = producer.send(&batch, Instant::now() + Duration::from_secs(60)).await;
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.refused.len(), KEYS, "one of each key");
    let refused: BTreeMap<usize, usize> = outcome
        .refused
        .iter()
        .map(|(position, reason)| {
            assert_eq!(*reason, RefusedReason::QueueFull);
            (position % KEYS, *position)
        })
        .collect();
    for (position, ack) in outcome.acks.iter().enumerate() {
        assert_eq!(ack.is_some(), position < refused[&(position % KEYS)], "record {position}");
    }
    let again: Vec<Record<'_>> = (0..100).map(record).collect();
    let outcome = producer.send(&again, Instant::now() + Duration::from_secs(60)).await;
    assert!(outcome.refused.is_empty() && outcome.acks.iter().all(Option::is_some), "{outcome:?}");
    producer.retire().await;
}
