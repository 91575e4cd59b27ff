//! The consumer loop: batches in, effects applied by the caller, then the offsets.

mod apply;
mod lag;
mod source;

use std::{fmt::Display, future::Future, sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::{DeadLetters, Error, KafkaOptions, Received, admin};

pub use apply::ApplyError;
use apply::{Applied, Ends};
use source::{Collected, Source};

const TOPICS_TIMEOUT: Duration = Duration::from_secs(5);
const TOPICS_AGAIN: Duration = Duration::from_secs(1);

/// How a consumer reads.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerOptions {
    /// The group that shares the topics' partitions.
    pub group: String,
    /// What to read.
    pub topics: Vec<String>,
    /// At most so many records become one transaction.
    pub batch_max_records: usize,
    /// How long to wait for more records once there is one.
    pub batch_wait_ms: u64,
    /// Whether the later records of an aggregate wait behind its dead letter; false: they are applied without it.
    pub dead_letter_aggregates_wait: bool,
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeMode {
    /// At shutdown only.
    Forever,
    /// When every assigned partition is read to its end.
    UntilIdle,
}

/// What a run of a consumer came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consumption {
    /// Records taken from the topics and settled one way or the other.
    pub records: u64,
    /// Of these, written to a dead letter topic.
    pub dead_letters: u64,
}

/// A record of a batch that was not applied because it waits behind a dead letter of its aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Which one of the batch.
    pub position: usize,
    /// Behind what.
    pub reason: String,
}

impl HeldBack {
    /// Those of a batch that wait; `reasons` says of each one, in order, behind what, or nothing.
    pub fn of(reasons: impl IntoIterator<Item = Option<String>>) -> Vec<Self> {
        let told = reasons.into_iter().enumerate();
        told.filter_map(|(position, reason)| Some(Self { position, reason: reason? })).collect()
    }
}

/// A member of a consumer group.
pub struct Consumer {
    source: Source,
    dead: DeadLetters,
    aggregates_wait: bool,
}

impl Consumer {
    /// Makes a member of the group; joins it when [run](Self::run).
    ///
    /// # Errors
    /// Settings that make no consumer.
    pub fn new(kafka: &KafkaOptions, options: &ConsumerOptions, name: &str) -> Result<Self, Error> {
        let (source, dead) = (Source::new(kafka, options, name)?, DeadLetters::new(kafka, name));
        Ok(Self { source, dead, aggregates_wait: options.dead_letter_aggregates_wait })
    }

    /// Reads batches until `mode` or `shutdown` says stop. `decode` turns a record into something to apply, or says
    /// why it never can be (the record becomes a dead letter). `apply` applies decoded records, all or none, in one
    /// transaction that also remembers that they were applied; only then may the offsets be committed, so after a
    /// crash it meets some of them again.
    ///
    /// A [conflict](ApplyError::Conflict) repeats the batch; an [unavailable](ApplyError::Unavailable) database
    /// does so with pauses, without losing the partitions; [bad data](ApplyError::Data) splits the batch until
    /// the bad record stands alone and becomes a dead letter.
    ///
    /// With `dead_letter_aggregates_wait`, `gave_up` hears of each such record, and notes it durably, before anything
    /// later of its aggregate is given to `apply`. What `apply` then returns as held back, and has noted in its
    /// transaction, becomes dead letters too.
    ///
    /// # Errors
    /// The client's fatal ones. A record that is neither applied nor a dead letter is never committed.
    pub async fn run<T, E, A, F, G, H>(
        mut self,
        decode: impl Fn(&Received) -> Result<T, E>,
        apply: A,
        gave_up: G,
        mode: ConsumeMode,
        shutdown: CancellationToken,
    ) -> Result<Consumption, Error>
    where
        E: Display,
        A: Fn(Vec<Arc<T>>) -> F,
        F: Future<Output = Result<Vec<HeldBack>, ApplyError>>,
        G: Fn(Received) -> H,
        H: Future<Output = Result<(), ApplyError>>,
    {
        let gave_up = self.aggregates_wait.then_some(&gave_up);
        let mut total = Consumption::default();
        loop {
            let records = match self.source.collect(mode, &shutdown).await? {
                Collected::Records(records) => records,
                Collected::End => break,
            };
            let ends = Ends { source: &mut self.source, dead: &mut self.dead, shutdown: &shutdown };
            match apply::batch(&records, (&decode, &apply, gave_up), ends).await? {
                Applied::All { dead_letters } => {
                    total.records += records.len() as u64;
                    total.dead_letters += dead_letters;
                    self.source.settle(&records);
                }
                Applied::Stopped => break,
            }
        }
        self.source.leave().await;
        Ok(total)
    }
}

/// Waits until the consumer's topics are there with as many partitions as declared, or for `shutdown`; `told`
/// hears of each look, for the service's readiness.
pub async fn wait_for_topics(
    kafka: &KafkaOptions,
    options: &ConsumerOptions,
    told: impl Fn(Option<String>),
    shutdown: &CancellationToken,
) {
    while let Err(error) = admin::check(kafka, &options.topics, TOPICS_TIMEOUT).await {
        tracing::warn!(%error, "not consuming yet");
        told(Some(error.to_string()));
        tokio::select! {
            () = tokio::time::sleep(TOPICS_AGAIN) => {}
            () = shutdown.cancelled() => return,
        }
    }
    told(None);
}

/// Waits between tries: from 100 ms doubling to 5 s, with jitter, without end.
pub(crate) fn backoff() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times()
        .build()
}
