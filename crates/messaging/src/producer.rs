//! The relay's producer: an ack is true, and nothing overtakes a record that failed.
//!
//! librdkafka gives neither by default. What it takes (measured, `docs/decisions/0003`): the settings in
//! [`crate::KafkaOptions`], and here: the first record of each partition goes alone and is acknowledged before the
//! next, one batch at a time, own deadlines, and after any error this producer is [retired](Producer::retire) and a
//! new one made.

mod acks;
mod failure;
mod topics;
mod transaction;

use std::{borrow::Cow, collections::BTreeSet, sync::Arc, time::Duration};

use rdkafka::{
    config::{ClientConfig, FromClientConfigAndContext},
    message::{Header, OwnedHeaders},
    producer::{BaseRecord, Producer as _, PurgeConfig, ThreadedProducer},
};
use tokio::time::Instant;

use crate::{Error, KafkaOptions};

pub use acks::Ack;
use acks::Acks;
pub use failure::{ProducerFailure, RefusedReason};
use topics::{Place, Topics};

/// What the broker adds to a record, generously.
const OVERHEAD_BYTES: usize = 1024;

/// A record to send.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// Where it goes.
    pub topic: &'a str,
    /// Decides the partition.
    pub key: &'a [u8],
    /// The value.
    pub payload: &'a [u8],
    /// Headers, in order.
    pub headers: Vec<(&'a str, Cow<'a, [u8]>)>,
}

/// What became of a batch.
#[derive(Debug)]
pub struct SendOutcome {
    /// Position by position: where the record is, if the broker has it for certain.
    pub acks: Vec<Option<Ack>>,
    /// Records that were not sent by their own fault, each with its reason. Later records of the same key were held
    /// back.
    pub refused: Vec<(usize, RefusedReason)>,
    /// Set: this producer must be retired. Records without an ack may have been written or not.
    pub failure: Option<ProducerFailure>,
}

impl SendOutcome {
    /// Why not all records were sent, in words; the first reason of several.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        let refused = self.refused.first().map(|(_, reason)| reason.to_string());
        self.failure.as_ref().map(ToString::to_string).or(refused)
    }
}

/// One producer, for one batch at a time.
pub struct Producer {
    inner: Option<Arc<ThreadedProducer<Acks>>>,
    acks: Acks,
    options: KafkaOptions,
    topics: Topics,
}

impl Producer {
    /// Makes a producer and asks the broker for its topics, within `timeout`.
    ///
    /// # Errors
    /// The broker is away, or the settings make no producer.
    pub async fn connect(options: &KafkaOptions, client_id: &str, timeout: Duration) -> Result<Self, Error> {
        let mut producer = Self::made(options, &options.producer(client_id))?;
        let ready = producer.refresh_topics(timeout).await;
        producer.if_ready(ready).await
    }

    /// One that has not seen the broker yet.
    fn made(options: &KafkaOptions, config: &ClientConfig) -> Result<Self, Error> {
        let acks = Acks::default();
        let inner = ThreadedProducer::from_config_and_context(config, acks.clone())
            .map_err(Error::kafka("make a producer"))?;
        let (inner, topics) = (Some(Arc::new(inner)), Topics::default());
        Ok(Self { inner, acks, options: options.clone(), topics })
    }

    /// Itself, or why it is not `ready`; retired then.
    async fn if_ready(self, ready: Result<(), Error>) -> Result<Self, Error> {
        match ready {
            Ok(()) => Ok(self),
            Err(error) => {
                self.retire().await;
                Err(error)
            }
        }
    }

    /// Asks the broker which topics there are, and how many partitions each has.
    ///
    /// # Errors
    /// The broker does not answer within `timeout`.
    pub async fn refresh_topics(&mut self, timeout: Duration) -> Result<(), Error> {
        let Some(inner) = self.inner.clone() else { return Ok(()) };
        let found = tokio::task::spawn_blocking(move || {
            let metadata = inner.client().fetch_metadata(None, timeout)?;
            let there = metadata.topics().iter().filter(|topic| topic.error().is_none());
            let counted = there.map(|topic| (topic.name().to_owned(), topic.partitions().len()));
            Ok::<Vec<_>, rdkafka::error::KafkaError>(counted.collect())
        })
        .await?;
        self.topics.found(found.map_err(|_| Error::BrokerAway(self.options.brokers.clone()))?);
        Ok(())
    }

    /// How many partitions a topic has, as last asked; none if there is no such topic.
    #[must_use]
    pub fn partitions(&self, topic: &str) -> Option<usize> {
        self.topics.partitions(topic)
    }

    /// Sends `records` and waits for their acks, or the first error, or `deadline`. Records of one key are
    /// written in the order given, or not at all from the first that fails on.
    ///
    /// Not cancellation safe: a producer whose send was cancelled must be retired.
    pub async fn send(&mut self, records: &[Record<'_>], deadline: Instant) -> SendOutcome {
        let mut outcome = SendOutcome { acks: Vec::new(), refused: Vec::new(), failure: None };
        self.acks.begin(records.len());
        let places = self.topics.places(records.iter().map(|record| (record.topic, record.key)));
        let (first, rest) = self.split_cold(records, &places, &mut outcome.refused);
        let mut held: BTreeSet<(&str, &[u8])> = BTreeSet::new();
        for phase in [first, rest] {
            if phase.is_empty() {
                continue;
            }
            let enqueued = self.enqueue(records, &phase, &mut outcome.refused, &mut held);
            let waited = self.acks.wait(deadline).await;
            if let Err(failure) = enqueued.and(waited) {
                outcome.failure = Some(failure);
                break;
            }
        }
        outcome.acks = self.acks.take();
        self.check(&places, &mut outcome);
        outcome
    }

    /// Ends this producer, dropping what is not sent. Takes up to a quarter of a second, off the runtime's threads.
    pub async fn retire(mut self) {
        if let Some(inner) = self.inner.take() {
            // Joining cannot fail but by a panic in the client's destructor, of which the hook tells.
            let _ended = tokio::task::spawn_blocking(move || end(inner)).await;
        }
    }

    /// Positions to send first (alone in their partition), and those to send after. Records that cannot be sent are
    /// refused, and hold back what follows of their key.
    fn split_cold(
        &self,
        records: &[Record<'_>],
        places: &[Option<Place>],
        refused: &mut Vec<(usize, RefusedReason)>,
    ) -> (Vec<usize>, Vec<usize>) {
        let mut held: BTreeSet<(&str, &[u8])> = BTreeSet::new();
        let mut going_first: BTreeSet<Place> = BTreeSet::new();
        let (mut first, mut rest) = (Vec::new(), Vec::with_capacity(records.len()));
        let now = Instant::now();
        for (position, (record, place)) in records.iter().zip(places).enumerate() {
            if !held.is_empty() && held.contains(&(record.topic, record.key)) {
                continue;
            }
            match self.sendable(record, *place) {
                Ok(place) if !self.topics.is_warm(place, now) && going_first.insert(place) => {
                    first.push(position);
                }
                Ok(_) => rest.push(position),
                Err(reason) => {
                    refused.push((position, reason));
                    held.insert((record.topic, record.key));
                }
            }
        }
        (first, rest)
    }

    fn sendable(&self, record: &Record<'_>, place: Option<Place>) -> Result<Place, RefusedReason> {
        let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = record.key.len() + record.payload.len() + headers + OVERHEAD_BYTES;
        if bytes > self.options.max_message_bytes {
            return Err(RefusedReason::TooLarge { bytes, limit: self.options.max_message_bytes });
        }
        place.ok_or(RefusedReason::UnknownTopic)
    }

    fn enqueue<'a>(
        &self,
        records: &[Record<'a>],
        positions: &[usize],
        refused: &mut Vec<(usize, RefusedReason)>,
        held: &mut BTreeSet<(&'a str, &'a [u8])>,
    ) -> Result<(), ProducerFailure> {
        let Some(inner) = &self.inner else { return Err(ProducerFailure::Retired) };
        self.acks.expect(positions.len());
        for (enqueued, position) in positions.iter().enumerate() {
            let record = &records[*position];
            if !held.is_empty() && held.contains(&(record.topic, record.key)) {
                self.acks.expect_fewer(1);
                continue;
            }
            let Err((error, _)) = inner.send(base_record(record, *position)) else {
                fail::fail_point!("producer-enqueued", |_| std::process::abort());
                continue;
            };
            self.acks.expect_fewer(1);
            held.insert((record.topic, record.key));
            match failure::of_enqueue(&error, self.options.max_message_bytes) {
                Ok(reason) => refused.push((*position, reason)),
                Err(failure) => {
                    self.acks.expect_fewer(positions.len() - enqueued - 1);
                    return Err(failure);
                }
            }
        }
        fail::fail_point!("producer-all-enqueued", |_| std::process::abort());
        Ok(())
    }

    /// What only shows after a batch: fatal errors that no record tells of, and records in another partition than
    /// reckoned (then "alone in its partition" was not true).
    fn check(&mut self, places: &[Option<Place>], outcome: &mut SendOutcome) {
        if let Some(inner) = &self.inner
            && let Some((code, reason)) = inner.client().fatal_error()
            // A refused record is fatal to the producer too, and says more.
            && !matches!(outcome.failure, Some(ProducerFailure::BadRecord(_)))
        {
            outcome.failure = Some(ProducerFailure::Fatal(format!("{code:?}: {reason}")));
        }
        let now = Instant::now();
        for (place, ack) in places.iter().zip(&outcome.acks) {
            let Some(ack) = ack else { continue };
            match place {
                Some(place) if usize::try_from(ack.partition) == Ok(place.partition) => {
                    self.topics.warmed(*place, now);
                }
                _ => {
                    outcome.failure.get_or_insert(ProducerFailure::PartitionsChanged);
                }
            }
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            // Blocks for a while, so not here: this may be a runtime thread.
            std::thread::spawn(move || end(inner));
        }
    }
}

fn end(inner: Arc<ThreadedProducer<Acks>>) {
    inner.purge(PurgeConfig::default().queue().inflight());
    drop(inner);
}

fn base_record<'a>(record: &'a Record<'_>, position: usize) -> BaseRecord<'a, [u8], [u8], usize> {
    let headers = record
        .headers
        .iter()
        .fold(OwnedHeaders::new_with_capacity(record.headers.len()), |headers, (name, value)| {
            headers.insert(Header { key: name, value: Some(value.as_ref()) })
        });
    BaseRecord::with_opaque_to(record.topic, position)
        .key(record.key)
        .payload(record.payload)
        .headers(headers)
}
