//! Exactly-once delivery: a batch, and the ids of its rows, in one Kafka transaction (`docs/decisions/0016`).
//!
//! The lane's keeper sends a batch and a progress record with the rows' ids in one transaction, commits it, and marks
//! the rows. Whoever begins in the lane, after a crash or an error or on another replica, first fences the one before
//! by the lane's transactional id, which also has the broker decide what that one had begun; then reads the progress,
//! which so is complete, and marks what it says was sent; and only then claims. A record is so sent a second time only
//! if it was never visible.

use std::time::Duration;

use events::topic::{self, PROGRESS_PARTITIONS};
use messaging::{
    Error as KafkaError, Producer, ProducerFailure, Record, RefusedReason, SendOutcome, partition_of,
    read_from,
};
use outbox::{LANES, Sent, Session};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::{
    options::{Options, Target},
    worker::TurnError,
};

const _: () = assert!(PROGRESS_PARTITIONS == LANES as usize, "a partition for each lane");

/// One lane, as its worker sees it.
pub(crate) struct Lane {
    pub(crate) number: i16,
    /// This session keeps it.
    kept: bool,
    topic: String,
}

/// A progress record's value.
#[derive(Serialize, Deserialize)]
struct Progress {
    ids: Vec<i64>,
    /// Microseconds since 1970, as exact as the database is.
    first_us: i64,
    last_us: i64,
}

impl Lane {
    pub(crate) fn new(number: i16) -> Self {
        Self { number, kept: false, topic: String::new() }
    }

    /// A new session keeps nothing yet.
    pub(crate) fn lost(&mut self) {
        self.kept = false;
    }

    /// Whether `session` keeps the lane, from now on if nobody else does.
    pub(crate) async fn keep(&mut self, session: &mut Session) -> Result<bool, TurnError> {
        if !self.kept {
            self.kept = session.keep_lane(self.number).await?;
        }
        Ok(self.kept)
    }

    /// A producer that has fenced the one before, with everything marked that was ever sent in the lane.
    pub(crate) async fn open(
        &mut self,
        session: &mut Session,
        target: &Target,
        (options, client_id): (&Options, &str),
    ) -> Result<Producer, TurnError> {
        let timeout = options.connect_timeout();
        let (source, offset) = session.lane(self.number).await?;
        self.topic = topic::progress(&source);
        let id = format!("brew-relay-{source}-{}", self.number);
        let times = (timeout, options.longest_transaction());
        let producer = Producer::connect_transactional(&target.kafka, client_id, &id, times).await?;
        match self.catch_up(session, (&producer, target), (offset, timeout)).await {
            Ok(0) => Ok(producer),
            Ok(rows) => {
                tracing::info!(source, lane = self.number, rows, "rows that were sent before are marked");
                Ok(producer)
            }
            Err(error) => {
                producer.retire().await;
                Err(error)
            }
        }
    }

    async fn catch_up(
        &self,
        session: &mut Session,
        (producer, target): (&Producer, &Target),
        (offset, timeout): (i64, Duration),
    ) -> Result<u64, TurnError> {
        let (topic, declared) = (self.topic.clone(), PROGRESS_PARTITIONS);
        match producer.partitions(&topic) {
            None => return Err(KafkaError::NoTopic(topic).into()),
            Some(found) if found != declared => {
                return Err(KafkaError::PartitionCount { topic, found, declared }.into());
            }
            Some(_) => {}
        }
        let records = read_from(&target.kafka, &topic, (self.partition(), offset), timeout).await?;
        let mut sent = Vec::with_capacity(records.len());
        for record in &records {
            sent.push(read(&record.payload).ok_or_else(|| TurnError::Progress {
                topic: topic.clone(),
                partition: record.partition,
                offset: record.offset,
            })?);
        }
        let Some(last) = records.last() else { return Ok(0) };
        Ok(session.catch_up(self.number, &sent, last.offset + 1).await?)
    }

    /// Ends the transaction in which `outcome` came about: commits it with `sent`, the rows that are in it. Returns the
    /// lane's new offset. Where the transaction's end is not certain, nothing counts as acknowledged, and the failure
    /// retires the producer.
    pub(crate) async fn decide(
        &self,
        producer: &mut Producer,
        sent: Option<Sent>,
        outcome: &mut SendOutcome,
        deadline: Instant,
    ) -> Option<(i16, i64)> {
        let decided = match (&outcome.failure, sent) {
            (Some(failure), _) => Err(failure.clone()),
            (None, None) => producer.abort(left(deadline)).await.map(|()| None).map_err(unclear),
            (None, Some(sent)) => self.commit(producer, &sent, deadline).await.map(Some),
        };
        match decided {
            Ok(offset) => offset.map(|offset| (self.number, offset)),
            Err(failure) => {
                outcome.acks.fill(None);
                outcome.failure = Some(failure);
                None
            }
        }
    }

    async fn commit(
        &self,
        producer: &mut Producer,
        sent: &Sent,
        deadline: Instant,
    ) -> Result<i64, ProducerFailure> {
        let key = self.key();
        let value = write(sent);
        let record = Record {
            topic: &self.topic,
            key: key.as_bytes(),
            payload: value.as_bytes(),
            headers: Vec::new(),
        };
        let told = producer.send(&[record], deadline).await;
        let (Some(Some(ack)), None) = (told.acks.first(), &told.failure) else {
            return Err(untold(sent, &told));
        };
        let offset = ack.offset + 1;
        fail::fail_point!("relay-progress-acked", |_| std::process::abort());
        producer.commit(left(deadline)).await.map_err(unclear)?;
        Ok(offset)
    }

    fn partition(&self) -> usize {
        usize::try_from(self.number).unwrap_or_default()
    }

    /// A key of the lane's own partition.
    fn key(&self) -> String {
        let keys = (0_u32..).map(|salt| format!("lane-{}-{salt}", self.number));
        let mut own =
            keys.filter(|key| partition_of(key.as_bytes(), PROGRESS_PARTITIONS) == self.partition());
        own.next().unwrap_or_default()
    }
}

fn left(deadline: Instant) -> Duration {
    // Never nothing: the client takes that for a mistake.
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(100))
}

/// Why the progress was not taken. Never the fault of the batch's rows, unless they are so many that their ids are too
/// large a record: then fewer are tried.
fn untold(sent: &Sent, told: &SendOutcome) -> ProducerFailure {
    let why = format!("the progress was not taken: {}", told.why().unwrap_or_default());
    let too_large = matches!(told.failure, Some(ProducerFailure::BadRecord(_)))
        || told.refused.iter().any(|(_, reason)| matches!(reason, RefusedReason::TooLarge { .. }));
    if too_large && sent.ids.len() > 1 {
        ProducerFailure::BadRecord(why)
    } else {
        ProducerFailure::Transient(why)
    }
}

fn unclear(error: KafkaError) -> ProducerFailure {
    ProducerFailure::Transient(telemetry::chain(&error))
}

fn write(sent: &Sent) -> String {
    let micros = |at: OffsetDateTime| i64::try_from(at.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX);
    let progress =
        Progress { ids: sent.ids.clone(), first_us: micros(sent.first), last_us: micros(sent.last) };
    // Numbers alone: there is nothing that could not be written.
    serde_json::to_string(&progress).unwrap_or_default()
}

fn read(payload: &[u8]) -> Option<Sent> {
    let Progress { ids, first_us, last_us } = serde_json::from_slice(payload).ok()?;
    let at = |micros: i64| OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok();
    Some(Sent { ids, first: at(first_us)?, last: at(last_us)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_comes_back_as_it_was() {
        let first = OffsetDateTime::from_unix_timestamp_nanos(1_764_000_000_123_456_000).unwrap();
        let sent = Sent { ids: vec![1, i64::MAX], first, last: first + Duration::from_micros(1) };
        assert_eq!(read(write(&sent).as_bytes()), Some(sent));
        assert_eq!(read(b""), None);
    }

    #[test]
    fn each_lane_has_a_partition_of_its_own() {
        for number in 0..LANES {
            let lane = Lane::new(number);
            assert_eq!(partition_of(lane.key().as_bytes(), PROGRESS_PARTITIONS), lane.partition());
        }
    }
}
