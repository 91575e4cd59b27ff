//! What a turn of the relay tells: a span for each record whose trace is sampled, and measurements.

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use messaging::{ProducerFailure, RefusedReason, SendOutcome};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use outbox::PendingRow;
use telemetry::{catalogue, metrics, spans};
use time::OffsetDateTime;

use crate::worker::{Turn, TurnError};

static PUBLISHED: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::RELAY_PUBLISHED));
static TURNS: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::RELAY_TURNS));
static FAILURES: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::RELAY_FAILURES));
static PARKED: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::RELAY_PARKED));
static BATCHES: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::rows(&catalogue::RELAY_BATCH));
static WAITS: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::seconds(&catalogue::RELAY_WAIT));
static CLAIMS: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::seconds(&catalogue::RELAY_CLAIM));

/// A batch of `source` was sent, begun at `began`.
pub(crate) fn sent(
    source: &str,
    sender: &spans::Sender,
    rows: &[PendingRow<'_>],
    outcome: &SendOutcome,
    began: SystemTime,
) {
    let label = [KeyValue::new("source", source.to_owned())];
    BATCHES.record(rows.len() as f64, &label);
    let now = OffsetDateTime::now_utc();
    for (position, (row, ack)) in rows.iter().zip(&outcome.acks).enumerate() {
        let waited = now - row.created_at;
        if ack.is_some() {
            WAITS.record(waited.as_seconds_f64().max(0.0), &label);
        }
        if !spans::sampled(&row.headers) {
            continue;
        }
        let event_id = row.event_id.to_string();
        let message = spans::Message {
            topic: row.topic,
            partition: ack.map(|ack| ack.partition),
            offset: ack.map(|ack| ack.offset),
            key: row.aggregate_id,
            event_id: &event_id,
        };
        let send = spans::Send {
            message,
            created: &row.headers,
            sender,
            waited: Some((
                i64::try_from(waited.whole_milliseconds()).unwrap_or(i64::MAX),
                i64::from(row.blocked.map_or(0, |blocked| blocked.attempts)) + 1,
            )),
            error: ack.is_none().then(|| why(position, outcome)),
        };
        spans::send(&send, began);
    }
}

/// A turn that claimed shards has ended; they were locked for `claimed`.
pub(crate) fn turned(source: &str, turn: &Result<Turn, TurnError>, claimed: Duration) {
    let label = KeyValue::new("source", source.to_owned());
    let (outcome, published) = match turn {
        Ok(Turn::Moved { rows }) => ("moved", *rows),
        Ok(Turn::Idle) => ("idle", 0),
        Ok(Turn::Elsewhere) => ("elsewhere", 0),
        Ok(Turn::Standby) => ("standby", 0),
        Ok(Turn::Held) => ("held", 0),
        Err(TurnError::Send { acknowledged, .. }) => ("failed", *acknowledged),
        Err(_) => ("failed", 0),
    };
    PUBLISHED.add(published as u64, std::slice::from_ref(&label));
    CLAIMS.record(claimed.as_secs_f64(), std::slice::from_ref(&label));
    TURNS.add(1, &[label, KeyValue::new("outcome", outcome)]);
}

/// A turn did not go well.
pub(crate) fn failed(source: &str, error: &TurnError) {
    let reason = match error {
        TurnError::Outbox(_) => "outbox",
        TurnError::Kafka(_) => "broker_away",
        TurnError::Progress { .. } => "progress",
        TurnError::Send { failure, .. } => reason(failure),
    };
    FAILURES.add(1, &[KeyValue::new("source", source.to_owned()), KeyValue::new("reason", reason)]);
}

/// So many rows were parked.
pub(crate) fn parked(source: &str, rows: usize) {
    PARKED.add(rows as u64, &[KeyValue::new("source", source.to_owned())]);
}

fn why(position: usize, outcome: &SendOutcome) -> &'static str {
    let refused = outcome.refused.iter().find(|(refused, _)| *refused == position);
    match (refused, &outcome.failure) {
        (Some((_, RefusedReason::TooLarge { .. })), _) => "too_large",
        (Some((_, RefusedReason::UnknownTopic)), _) => "unknown_topic",
        (Some((_, RefusedReason::QueueFull)), _) => "queue_full",
        (None, Some(failure)) => reason(failure),
        (None, None) => "held_back",
    }
}

fn reason(failure: &ProducerFailure) -> &'static str {
    match failure {
        ProducerFailure::Deadline => "deadline",
        ProducerFailure::Transient(_) => "transient",
        ProducerFailure::BadRecord(_) => "bad_record",
        ProducerFailure::Topic(_) => "topic",
        ProducerFailure::Unauthorized(_) => "unauthorized",
        ProducerFailure::Fatal(_) => "fatal",
        ProducerFailure::PartitionsChanged => "partitions_changed",
        ProducerFailure::Retired => "retired",
    }
}
