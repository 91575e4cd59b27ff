//! Our reckoning of a key's partition against the client's: every ack says which partition it took.

use std::time::Duration;

use messaging::{Producer, Record, partition_of};
use tokio::time::Instant;

#[tokio::test]
async fn keys_land_where_we_reckon() {
    let options = testkit::kafka();
    let topic = testkit::topic(&options, None).await;
    let mut producer = Producer::connect(&options, "test", Duration::from_secs(20)).await.unwrap();
    let keys: Vec<String> = (0..500).map(|n| format!("order-{n}{}", "\u{e9}".repeat(n % 5))).collect();
    let records: Vec<Record<'_>> = keys
        .iter()
        .map(|key| Record { topic: &topic, key: key.as_bytes(), payload: b"x", headers: Vec::new() })
        .collect();
    let outcome = producer.send(&records, Instant::now() + Duration::from_secs(20)).await;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    for (key, ack) in keys.iter().zip(&outcome.acks) {
        let ack = ack.expect("an ack");
        assert_eq!(ack.partition, partition_of(key.as_bytes(), 6) as i32, "{key}");
    }
}
