//! Reading topics whole, for checks and tests.

use std::{
    collections::BTreeSet,
    ops::Range,
    time::{Duration, Instant},
};

use rdkafka::{
    Message as _, Offset, TopicPartitionList,
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
    tokio::task::spawn_blocking(move || read_to(&options, &topic, &ends, timeout)).await?
}

/// All partitions at once: a partition that is waited for alone costs the broker's fetch wait each time.
fn read_to(
    options: &KafkaOptions,
    topic: &str,
    ends: &[Range<i64>],
    timeout: Duration,
) -> Result<Vec<Received>, Error> {
    let mut config = options.client("brew-reader");
    config.set("group.id", "brew-reader").set("enable.auto.commit", "false");
    config.set("isolation.level", "read_committed").set("fetch.wait.max.ms", "50");
    let consumer: BaseConsumer = config.create().map_err(Error::kafka("make a reader"))?;
    let mut list = TopicPartitionList::new();
    let mut left: BTreeSet<i32> = BTreeSet::new();
    for (partition, range) in (0_i32..).zip(ends).filter(|(_, range)| !range.is_empty()) {
        list.add_partition_offset(topic, partition, Offset::Offset(range.start))
            .map_err(Error::kafka("assign a partition"))?;
        left.insert(partition);
    }
    consumer.assign(&list).map_err(Error::kafka("assign partitions"))?;
    let end = |partition: i32| {
        usize::try_from(partition).ok().and_then(|at| ends.get(at)).map_or(0, |range| range.end)
    };
    let mut records: Vec<Vec<Received>> = ends.iter().map(|_| Vec::new()).collect();
    let deadline = Instant::now() + timeout;
    while !left.is_empty() {
        match consumer.poll(Duration::from_millis(20)) {
            Some(Ok(message)) => {
                let (partition, offset) = (message.partition(), message.offset());
                if offset + 1 >= end(partition) {
                    left.remove(&partition);
                }
                let place = usize::try_from(partition).ok().and_then(|at| records.get_mut(at));
                if let Some(place) = place.filter(|_| offset < end(partition)) {
                    place.push(Received::from_message(&message));
                }
            }
            Some(Err(source)) => return Err(Error::Kafka { context: "read a partition", source }),
            // Transaction markers fill offsets that no record has, so the position decides and not the last record.
            None => {
                let positions = consumer.position().map_err(Error::kafka("ask for positions"))?;
                left.retain(|partition| {
                    let at = positions.find_partition(topic, *partition).map(|element| element.offset());
                    !matches!(at, Some(Offset::Offset(at)) if at >= end(*partition))
                });
            }
        }
        if !left.is_empty() && Instant::now() > deadline {
            return Err(Error::BrokerAway(format!("{topic}, partitions {left:?}")));
        }
    }
    Ok(records.into_iter().flatten().collect())
}
