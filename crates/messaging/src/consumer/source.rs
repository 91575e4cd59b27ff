//! Where batches come from: one member of a consumer group.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use rdkafka::{
    Offset,
    consumer::{CommitMode, Consumer as _, StreamConsumer},
    error::KafkaError,
};
use tokio_util::sync::CancellationToken;

use crate::{Error, KafkaOptions, Received};

use super::{ConsumeMode, ConsumerOptions, lag::Lag};

/// How often a consumer that runs until idle looks whether it is.
const IDLE_CHECK: Duration = Duration::from_millis(200);
const WATERMARK_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) enum Collected {
    Records(Vec<Received>),
    End,
}

pub(super) struct Source {
    inner: Arc<StreamConsumer<Lag>>,
    options: ConsumerOptions,
    /// Came while the consumer was waiting and belong to the next batch.
    ahead: VecDeque<Received>,
}

impl Source {
    pub(super) fn new(kafka: &KafkaOptions, options: &ConsumerOptions, name: &str) -> Result<Self, Error> {
        let mut config = kafka.client(name);
        config
            .set("group.id", &options.group)
            // What was handed out is not yet what was settled: only that is stored, and the client commits what is
            // stored, again if it failed, also before a partition goes to another member and at the end. Committed by
            // hand, an offset that failed in a rebalance stays behind, and one of a partition that another member
            // has by now takes that back.
            .set("enable.auto.offset.store", "false")
            .set("enable.auto.commit", "true")
            .set("auto.commit.interval.ms", "100")
            .set("auto.offset.reset", "earliest")
            .set("partition.assignment.strategy", "cooperative-sticky")
            // A member that was killed holds up its partitions for this long; the default is 45 s.
            .set("session.timeout.ms", "10000")
            .set("heartbeat.interval.ms", "3000")
            .set("isolation.level", "read_committed")
            .set("check.crcs", "true")
            .set("queued.max.messages.kbytes", "8192")
            .set("fetch.wait.max.ms", "100")
            .set("statistics.interval.ms", "5000");
        let inner = config.create_with_context(Lag::new(name));
        let inner: StreamConsumer<Lag> = inner.map_err(Error::kafka("make a consumer"))?;
        let topics: Vec<&str> = options.topics.iter().map(String::as_str).collect();
        inner.subscribe(&topics).map_err(Error::kafka("subscribe"))?;
        Ok(Self { inner: Arc::new(inner), options: options.clone(), ahead: VecDeque::new() })
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

    /// Lets the client commit behind `records`, which are settled, unless another member has their partitions now. That
    /// a commit fails is no error: they come again and are known then.
    pub(super) fn settle(&mut self, records: &[Received]) {
        let mut next: BTreeMap<(&str, i32), i64> = BTreeMap::new();
        for record in records {
            next.insert((&record.topic, record.partition), record.offset + 1);
        }
        for ((topic, partition), behind) in next {
            // The client takes the offset before the next one to be read.
            if let Err(error) = self.inner.store_offset(topic, partition, behind - 1) {
                tracing::debug!(%error, topic, partition, "not committed: another member has the partition");
            }
        }
    }

    /// Commits once more and waits for it, then leaves the group.
    pub(super) async fn leave(self) {
        let inner = self.inner;
        let ended = tokio::task::spawn_blocking(move || {
            if let Err(error) = inner.commit_consumer_state(CommitMode::Sync) {
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

fn at_end(consumer: &StreamConsumer<Lag>) -> Result<bool, KafkaError> {
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
