//! Reading topics outside of any group, for checks, measurements and tests: it changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::{Duration, Instant},
};

use rdkafka::{
    Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{Error, KafkaOptions, Received, admin};

/// Longest that one look for the next record takes.
const POLL: Duration = Duration::from_millis(20);

/// Reads every record that `topic` has now, partition by partition in offset order.
///
/// # Errors
/// The client's, or [`Error::BrokerAway`] when the end is not reached within `timeout`.
pub async fn read_all(
    options: &KafkaOptions,
    topic: &str,
    timeout: Duration,
) -> Result<Vec<Received>, Error> {
    let take = |all: &mut BTreeMap<i32, Vec<Received>>, record: Received| {
        all.entry(record.partition).or_default().push(record);
    };
    let all = fold(options, topic, timeout, BTreeMap::new(), take).await?;
    Ok(all.into_values().flatten().collect())
}

/// Gives every record that `topic` has now to `take`, and returns what became of `state`: for topics that are larger
/// than the memory. Each partition's records come in offset order, the partitions mixed.
///
/// # Errors
/// As [`read_all`].
pub async fn fold<T: Send + 'static>(
    options: &KafkaOptions,
    topic: &str,
    timeout: Duration,
    state: T,
    take: impl FnMut(&mut T, Received) + Send + 'static,
) -> Result<T, Error> {
    let ranges = admin::offsets(options, topic, timeout).await?;
    fold_ranges((options, topic), ranges, timeout, state, take).await
}

/// Reads what `partition` of `topic` has now from `offset` on; what is committed, if it was written in a transaction.
/// All of it if `offset` is behind its end: then the topic was made anew.
///
/// # Errors
/// As [`read_all`].
pub async fn read_from(
    options: &KafkaOptions,
    topic: &str,
    (partition, offset): (usize, i64),
    timeout: Duration,
) -> Result<Vec<Received>, Error> {
    let mut ranges = admin::offsets(options, topic, timeout).await?;
    for (number, range) in ranges.iter_mut().enumerate() {
        if number != partition {
            range.start = range.end;
        } else if offset <= range.end {
            range.start = range.start.max(offset);
        }
    }
    fold_ranges((options, topic), ranges, timeout, Vec::new(), Vec::push).await
}

/// Gives the records in `ranges`, one for each partition, to `take`; on a thread where it may block.
async fn fold_ranges<T: Send + 'static>(
    (options, topic): (&KafkaOptions, &str),
    ranges: Vec<Range<i64>>,
    timeout: Duration,
    mut state: T,
    mut take: impl FnMut(&mut T, Received) + Send + 'static,
) -> Result<T, Error> {
    let (options, topic) = (options.clone(), topic.to_owned());
    let read = move || {
        read_to(&options, &topic, &ranges, timeout, |record| take(&mut state, record))?;
        Ok(state)
    };
    tokio::task::spawn_blocking(read).await?
}

/// Gives `take` what comes to `topic` from now on, as soon as it is there, on a thread of its own until `shutdown`.
/// What is written after this has returned is not missed.
///
/// # Errors
/// The client's, or [`Error::BrokerAway`] when the topic's ends are not known within `timeout`; the task's are the
/// client's.
pub async fn follow(
    options: &KafkaOptions,
    topic: &str,
    timeout: Duration,
    mut take: impl FnMut(Received) + Send + 'static,
    shutdown: CancellationToken,
) -> Result<JoinHandle<Result<(), Error>>, Error> {
    let ends = admin::offsets(options, topic, timeout).await?;
    let consumer = assigned(options, topic, ends.iter().map(|range| Some(range.end)))?;
    Ok(tokio::task::spawn_blocking(move || {
        while !shutdown.is_cancelled() {
            if let Some(polled) = consumer.poll(POLL) {
                take(Received::from_message(&polled.map_err(Error::kafka("read a partition"))?));
            }
        }
        Ok(())
    }))
}

/// A consumer that begins with partition 0 at the first of `begins`, and so on; without those that are none.
fn assigned(
    options: &KafkaOptions,
    topic: &str,
    begins: impl Iterator<Item = Option<i64>>,
) -> Result<BaseConsumer, Error> {
    let mut config = options.client("brew-reader");
    config.set("group.id", "brew-reader").set("enable.auto.commit", "false");
    config.set("isolation.level", "read_committed").set("fetch.wait.max.ms", "50");
    let consumer: BaseConsumer = config.create().map_err(Error::kafka("make a reader"))?;
    let mut list = TopicPartitionList::new();
    for (partition, begin) in (0_i32..).zip(begins) {
        let Some(begin) = begin else { continue };
        list.add_partition_offset(topic, partition, Offset::Offset(begin))
            .map_err(Error::kafka("assign a partition"))?;
    }
    consumer.assign(&list).map_err(Error::kafka("assign partitions"))?;
    Ok(consumer)
}

/// All partitions at once: a partition that is waited for alone costs the broker's fetch wait each time.
fn read_to(
    options: &KafkaOptions,
    topic: &str,
    ends: &[Range<i64>],
    timeout: Duration,
    mut take: impl FnMut(Received),
) -> Result<(), Error> {
    let filled = |range: &Range<i64>| (!range.is_empty()).then_some(range.start);
    let consumer = assigned(options, topic, ends.iter().map(filled))?;
    let partitions = (0_i32..).zip(ends).filter(|(_, range)| !range.is_empty());
    let mut left: BTreeSet<i32> = partitions.map(|(partition, _)| partition).collect();
    let end = |partition: i32| {
        usize::try_from(partition).ok().and_then(|at| ends.get(at)).map_or(0, |range| range.end)
    };
    let deadline = Instant::now() + timeout;
    while !left.is_empty() {
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                let (partition, offset) = (message.partition(), message.offset());
                if offset + 1 >= end(partition) {
                    left.remove(&partition);
                }
                if offset < end(partition) {
                    take(Received::from_message(&message));
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
    Ok(())
}
