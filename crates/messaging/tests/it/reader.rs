//! What watches a topic sees all of it, and no more.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use messaging::{Ends, Producer, Record, fold, follow};
use testkit::{kafka, topic, until};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(20);

async fn write(topic: &str, numbers: std::ops::Range<u32>) {
    let mut producer = Producer::connect(&kafka(), "test", TIMEOUT).await.unwrap();
    let keys: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let records: Vec<Record<'_>> = keys
        .iter()
        .map(|key| Record { topic, key: key.as_bytes(), payload: b"{}", headers: Vec::new() })
        .collect();
    let outcome = producer.send(&records, Instant::now() + TIMEOUT).await;
    assert!(outcome.acks.iter().all(Option::is_some), "{:?}", outcome.failure);
    producer.retire().await;
}

#[tokio::test]
async fn a_follower_hears_what_comes_later_and_the_ends_count_all() {
    let topic = topic(&kafka(), None).await;
    let ends = Ends::of(&kafka(), &topic, TIMEOUT).await.unwrap();
    assert_eq!(ends.sum().await.unwrap(), 0);
    write(&topic, 0..10).await;
    assert_eq!(ends.sum().await.unwrap(), 10);

    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let shutdown = CancellationToken::new();
    let hear = move |record: messaging::Received| ears.lock().unwrap().push(record.key);
    let follower = follow(&kafka(), &topic, TIMEOUT, hear, shutdown.clone()).await.unwrap();
    write(&topic, 10..30).await;
    until("the follower", async || (heard.lock().unwrap().len() == 20).then_some(())).await;
    shutdown.cancel();
    follower.await.unwrap().unwrap();
    let mut keys = heard.lock().unwrap().clone();
    keys.sort();
    assert_eq!(keys, (10..30).map(|number| number.to_string().into_bytes()).collect::<Vec<_>>());

    assert_eq!(ends.sum().await.unwrap(), 30);
    let count = |count: &mut usize, _| *count += 1;
    assert_eq!(fold(&kafka(), &topic, TIMEOUT, 0, count).await.unwrap(), 30);
}

#[tokio::test]
async fn a_topic_that_is_not_there_has_no_ends() {
    let error = Ends::of(&kafka(), "test.nowhere", TIMEOUT).await.err().unwrap();
    assert!(matches!(error, messaging::Error::NoTopic(_)));
}
