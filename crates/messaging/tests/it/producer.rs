//! What a batch comes to when something is wrong with it, or with the broker.

use std::time::Duration;

use messaging::{KafkaOptions, Producer, ProducerFailure, Record, RefusedReason};
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(20);

fn record<'a>(topic: &'a str, key: &'a str, payload: &'a [u8]) -> Record<'a> {
    Record { topic, key: key.as_bytes(), payload, headers: Vec::new() }
}

async fn log_of(topic: &str, key: &str) -> Vec<String> {
    let records = testkit::read(topic).await;
    records
        .into_iter()
        .filter(|record| record.key == key.as_bytes())
        .map(|record| String::from_utf8_lossy(&record.payload[..1]).into_owned())
        .collect()
}

#[tokio::test]
async fn what_cannot_be_sent_holds_back_its_key_and_nothing_else() {
    let options = testkit::kafka();
    let topic = testkit::topic(&options, None).await;
    let mut producer = Producer::connect(&options, "test", TIMEOUT).await.unwrap();
    let large = vec![b'L'; 2_000_000];
    let batch = [
        record(&topic, "a", b"1"),
        record(&topic, "a", &large),
        record(&topic, "a", b"3"),
        record("no.such.topic", "b", b"1"),
        record(&topic, "c", b"1"),
    ];
    let outcome = producer.send(&batch, Instant::now() + TIMEOUT).await;
    assert!(outcome.failure.is_none());
    let acked: Vec<bool> = outcome.acks.iter().map(Option::is_some).collect();
    assert_eq!(acked, [true, false, false, false, true]);
    assert!(matches!(outcome.refused[0], (1, RefusedReason::TooLarge { .. })));
    assert_eq!(outcome.refused[1], (3, RefusedReason::UnknownTopic));
    assert_eq!(log_of(&topic, "a").await, ["1"]);
}

/// The broker refuses a request in the middle of a batch. Whatever is acknowledged is in the log, and nothing of
/// the partition has overtaken the record that failed.
#[tokio::test]
async fn nothing_overtakes_a_record_that_the_broker_refuses() {
    let options = testkit::kafka();
    let small = KafkaOptions { max_message_bytes: 5_000, partitions: 1, ..options.clone() };
    let topic = testkit::topic(&small, None).await;
    // Noise, since what compresses well would pass.
    let mut noise = 1_u32;
    let large: Vec<u8> = std::iter::once(b'X')
        .chain(std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        }))
        .take(20_000)
        .collect();
    for position in [0, 1, 7, 19] {
        let key = format!("key-{position}");
        let payloads: Vec<Vec<u8>> = (0..20_u8)
            .map(|n| if usize::from(n) == position { large.clone() } else { vec![b'a' + n; 400] })
            .collect();
        let batch: Vec<Record<'_>> = payloads.iter().map(|payload| record(&topic, &key, payload)).collect();
        let mut producer = Producer::connect(&options, "test", TIMEOUT).await.unwrap();
        let outcome = producer.send(&batch, Instant::now() + TIMEOUT).await;
        producer.retire().await;
        assert!(outcome.failure.is_some(), "the broker took a record over its limit");
        let log = log_of(&topic, &key).await;
        let expected: Vec<String> = (0..20_u8).map(|n| char::from(b'a' + n).to_string()).collect();
        assert!(log.len() <= position && log == expected[..log.len()], "position {position}: {log:?}");
        let acked = outcome.acks.iter().take_while(|ack| ack.is_some()).count();
        assert_eq!(outcome.acks.iter().flatten().count(), acked, "an ack behind the failed record");
        assert!(acked <= log.len());
    }
}

#[tokio::test]
async fn a_broker_that_is_away_is_no_producer() {
    let options = KafkaOptions { brokers: "127.0.0.1:1".to_owned(), ..testkit::kafka() };
    let failed = Producer::connect(&options, "test", Duration::from_millis(300)).await;
    assert!(matches!(failed, Err(messaging::Error::BrokerAway(_))));
}

#[tokio::test]
async fn acks_that_do_not_come_in_time_are_a_failure_not_an_error_of_the_records() {
    let options = testkit::kafka();
    let topic = testkit::topic(&options, None).await;
    let mut producer = Producer::connect(&options, "test", TIMEOUT).await.unwrap();
    let outcome = producer.send(&[record(&topic, "a", b"1")], Instant::now()).await;
    assert_eq!(outcome.failure, Some(ProducerFailure::Deadline));
    assert!(outcome.refused.is_empty());
}
