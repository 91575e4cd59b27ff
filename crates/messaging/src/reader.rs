//! Reading topics whole, for checks and tests.

use std::time::{Duration, Instant};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};

use crate::{Error, KafkaOptions, Received, admin};

/// Reads every record that `topic` has now, partition by partition in offset order. In no group: it changes
/// nothing.
///
/// # Errors
/// The client's, or [`Error::BrokerAway`] when the end is not reached within `timeout`.
pub async fn read_all(
    options: &KafkaOptions,
    topic: &str,
    timeout: Duration,
) -> Result<Vec<Received>, Error> {
    let ends = admin::offsets(options, topic, timeout).await?;
    let (options, topic) = (options.clone(), topic.to_owned());
    tokio::task::spawn_blocking(move || {
        let mut config = options.client("brew-reader");
        config.set("group.id", "brew-reader").set("enable.auto.commit", "false");
        config.set("isolation.level", "read_committed");
        let consumer: BaseConsumer = config.create().map_err(Error::kafka("make a reader"))?;
        let mut records = Vec::new();
        for (partition, range) in (0_i32..).zip(ends) {
            read_partition(&consumer, &topic, partition, range, timeout, &mut records)?;
        }
        Ok(records)
    })
    .await?
}

fn read_partition(
    consumer: &BaseConsumer,
    topic: &str,
    partition: i32,
    range: std::ops::Range<i64>,
    timeout: Duration,
    records: &mut Vec<Received>,
) -> Result<(), Error> {
    if range.is_empty() {
        return Ok(());
    }
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(range.start))
        .and_then(|()| consumer.assign(&list))
        .map_err(Error::kafka("assign a partition"))?;
    let deadline = Instant::now() + timeout;
    loop {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                records.push(Received::from_message(&message));
            }
            Some(Err(source)) => return Err(Error::Kafka { context: "read a partition", source }),
            None => {}
        }
        // Transaction markers fill offsets that no record has, so the position decides and not the last record.
        let position = consumer
            .position()
            .ok()
            .and_then(|list| list.find_partition(topic, partition).map(|element| element.offset()));
        if matches!(position, Some(Offset::Offset(at)) if at >= range.end) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Error::BrokerAway(format!("{topic}/{partition}")));
        }
    }
}
