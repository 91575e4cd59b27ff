//! Where batches come from: one member of a consumer group.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{CommitMode, Consumer as _, StreamConsumer},
    error::KafkaError,
};
use tokio_util::sync::CancellationToken;

use crate::{Error, KafkaOptions, Received};

use super::{ConsumeMode, ConsumerOptions};

/// How often a consumer that runs until idle looks whether it is.
const IDLE_CHECK: Duration = Duration::from_millis(200);
const WATERMARK_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) enum Collected {
    Records(Vec<Received>),
    End,
}

pub(super) struct Source {
    inner: Arc<StreamConsumer>,
    options: ConsumerOptions,
    /// Came while the consumer was waiting and belong to the next batch.
    ahead: VecDeque<Received>,
    /// Behind what was settled, by topic and partition: all that may ever be committed.
    settled: BTreeMap<(String, i32), i64>,
}

impl Source {
    pub(super) fn new(kafka: &KafkaOptions, options: &ConsumerOptions, name: &str) -> Result<Self, Error> {
        let mut config = kafka.client(name);
        config
            .set("group.id", &options.group)
            .set("enable.auto.commit", "false")
            // What was handed out is not yet what was settled.
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "earliest")
            .set("partition.assignment.strategy", "cooperative-sticky")
            // A member that was killed holds up its partitions for this long; the default is 45 s.
            .set("session.timeout.ms", "10000")
            .set("heartbeat.interval.ms", "3000")
            .set("isolation.level", "read_committed")
            .set("check.crcs", "true")
            .set("queued.max.messages.kbytes", "8192")
            .set("fetch.wait.max.ms", "100");
        let inner: StreamConsumer = config.create().map_err(Error::kafka("make a consumer"))?;
        let topics: Vec<&str> = options.topics.iter().map(String::as_str).collect();
        inner.subscribe(&topics).map_err(Error::kafka("subscribe"))?;
        Ok(Self {
            inner: Arc::new(inner),
            options: options.clone(),
            ahead: VecDeque::new(),
            settled: BTreeMap::new(),
        })
    }

    /// The next batch, at least one record.
    pub(super) async fn collect(
        &mut self,
        mode: ConsumeMode,
        shutdown: &CancellationToken,
    ) -> Result<Collected, Error> {
        let first = loop {
            if let Some(record) = self.ahead.pop_front() {
                break record;
            }
            tokio::select! {
                () = shutdown.cancelled() => return Ok(Collected::End),
                record = self.receive() => if let Some(record) = record? { break record },
                () = tokio::time::sleep(IDLE_CHECK) => {
                    if mode == ConsumeMode::UntilIdle && self.at_end().await? {
                        return Ok(Collected::End);
                    }
                }
            }
        };
        let mut records = vec![first];
        let until = tokio::time::Instant::now() + Duration::from_millis(self.options.batch_wait_ms);
        while records.len() < self.options.batch_max_records {
            if let Some(record) = self.ahead.pop_front() {
                records.push(record);
                continue;
            }
            match tokio::time::timeout_at(until, self.receive()).await {
                Ok(record) => records.extend(record?),
                Err(_) => break,
            }
        }
        Ok(Collected::Records(records))
    }

    /// Waits with the partitions paused, polling on, so that the group does not take them away. True: shutdown
    /// came.
    pub(super) async fn wait(
        &mut self,
        delay: Duration,
        shutdown: &CancellationToken,
    ) -> Result<bool, Error> {
        self.set_paused(true);
        let until = tokio::time::Instant::now() + delay;
        let stopped = loop {
            tokio::select! {
                () = shutdown.cancelled() => break true,
                () = tokio::time::sleep_until(until) => break false,
                record = self.receive() => {
                    let record = record?;
                    self.ahead.extend(record);
                    // Partitions that were assigned just now are not paused yet.
                    self.set_paused(true);
                }
            }
        };
        self.set_paused(false);
        Ok(stopped)
    }

    /// Commits behind `records`, which are settled. That it fails is no error: they come again and are known then.
    pub(super) fn commit(&mut self, records: &[Received]) {
        let mut next: BTreeMap<(String, i32), i64> = BTreeMap::new();
        for record in records {
            next.insert((record.topic.clone(), record.partition), record.offset + 1);
        }
        if let Err(error) = self.inner.commit(&offsets(&next), CommitMode::Async) {
            tracing::warn!(%error, "offsets not committed");
        }
        self.settled.extend(next);
    }

    /// Commits once more and waits for it, then leaves the group.
    pub(super) async fn leave(self) {
        let (inner, settled) = (self.inner, offsets(&self.settled));
        let ended = tokio::task::spawn_blocking(move || {
            if settled.count() > 0
                && let Err(error) = inner.commit(&settled, CommitMode::Sync)
            {
                tracing::debug!(%error, "last commit");
            }
            drop(inner);
        });
        if ended.await.is_err() {
            tracing::warn!("the consumer's end panicked");
        }
    }

    async fn receive(&self) -> Result<Option<Received>, Error> {
        match self.inner.recv().await {
            Ok(message) => Ok(Some(Received::from_message(&message))),
            Err(error) => {
                if let Some((_, reason)) = self.inner.client().fatal_error() {
                    tracing::error!(reason, "consumer");
                    return Err(Error::Kafka { context: "consume", source: error });
                }
                tracing::warn!(%error, "consumer");
                Ok(None)
            }
        }
    }

    fn set_paused(&self, paused: bool) {
        let result = self
            .inner
            .assignment()
            .and_then(|list| if paused { self.inner.pause(&list) } else { self.inner.resume(&list) });
        if let Err(error) = result {
            tracing::warn!(%error, paused, "partitions not paused or resumed");
        }
    }

    /// Whether every assigned partition is read to its end. Not while there is none.
    async fn at_end(&self) -> Result<bool, Error> {
        let inner = Arc::clone(&self.inner);
        let checked = tokio::task::spawn_blocking(move || at_end(&inner)).await?;
        Ok(checked.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot tell whether the topic is read to its end");
            false
        }))
    }
}

fn offsets(next: &BTreeMap<(String, i32), i64>) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(next.len());
    for ((topic, partition), offset) in next {
        if let Err(error) = list.add_partition_offset(topic, *partition, Offset::Offset(*offset)) {
            tracing::warn!(%error, topic, partition, offset, "offset not committed");
        }
    }
    list
}

fn at_end(consumer: &StreamConsumer) -> Result<bool, KafkaError> {
    let assignment = consumer.assignment()?;
    if assignment.count() == 0 {
        return Ok(false);
    }
    let read = consumer.position()?;
    let committed = consumer.committed_offsets(assignment.clone(), WATERMARK_TIMEOUT)?;
    for element in assignment.elements() {
        let (topic, partition) = (element.topic(), element.partition());
        let (low, high) = consumer.fetch_watermarks(topic, partition, WATERMARK_TIMEOUT)?;
        let at = [&read, &committed]
            .iter()
            .filter_map(|list| list.find_partition(topic, partition))
            .find_map(|element| match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            });
        if at.unwrap_or(low) < high {
            return Ok(false);
        }
    }
    Ok(true)
}
