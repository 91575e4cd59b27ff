//! Dead letters: records that a consumer cannot read or apply, kept with the reason.

use std::{
    borrow::Cow,
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use events::{header, topic};
use opentelemetry::{KeyValue, metrics::Counter};
use telemetry::{catalogue, metrics, spans};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Ack, Error, KafkaOptions, Producer, Received, Record, consumer::backoff};

/// Room for the reason beside a record that is itself as large as can be; dead letter topics are declared with it.
pub(crate) const EXTRA_BYTES: usize = 64 * 1024;

static DEAD: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::CONSUMER_DEAD));

const CLIENT_ID: &str = "brew-dead-letters";

const ACK_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes one consumer's dead letters.
pub struct DeadLetters {
    options: KafkaOptions,
    consumer: String,
    producer: Option<Producer>,
}

impl DeadLetters {
    /// Connects at the first dead letter.
    #[must_use]
    pub fn new(options: &KafkaOptions, consumer: &str) -> Self {
        // There from the start, so that the first letter is seen to be one more.
        DEAD.add(0, &[KeyValue::new("group", consumer.to_owned())]);
        let mut options = options.clone();
        options.max_message_bytes += EXTRA_BYTES;
        Self { options, consumer: consumer.to_owned(), producer: None }
    }

    /// Writes records to their dead letter topics, each with its reason: same key, value and headers, plus why, when,
    /// whence and who. Tries until the broker has them all. Of one aggregate they are written in the order given.
    ///
    /// # Errors
    /// [`Error::DeadLetter`] when `shutdown` comes first: none of the records must then be committed.
    pub async fn write(
        &mut self,
        records: &[(&Received, String)],
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let mut left: Vec<&(&Received, String)> = records.iter().collect();
        for delay in backoff() {
            let failure = self.try_write(&mut left).await;
            let Some((record, reason)) = left.first() else {
                DEAD.add(records.len() as u64, &[KeyValue::new("group", self.consumer.clone())]);
                return Ok(());
            };
            let (place, failure) = (record.place(), failure.unwrap_or_default());
            tracing::error!(%place, reason, failure, left = left.len(), "dead letter not written, trying again");
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = shutdown.cancelled() => break,
            }
        }
        Err(Error::DeadLetter(left.first().map(|(record, _)| record.place().to_string()).unwrap_or_default()))
    }

    /// Takes out of `left` what the broker has; returns why there is a rest.
    async fn try_write(&mut self, left: &mut Vec<&(&Received, String)>) -> Option<String> {
        if left.is_empty() {
            return None;
        }
        let mut producer = match self.producer.take() {
            Some(producer) => producer,
            None => match Producer::connect(&self.options, CLIENT_ID, ACK_TIMEOUT).await {
                Ok(producer) => producer,
                Err(error) => return Some(error.to_string()),
            },
        };
        let topics: Vec<String> =
            left.iter().map(|(record, _)| topic::dead_letter(&record.topic, &self.consumer)).collect();
        let letters: Vec<Record<'_>> = left
            .iter()
            .zip(&topics)
            .map(|((record, reason), topic)| letter(record, topic, reason, &self.consumer))
            .collect();
        let began = SystemTime::now();
        let sent = producer.send(&letters, Instant::now() + ACK_TIMEOUT).await;
        let sender = spans::Sender::new(CLIENT_ID, self.options.first_broker());
        let mut acks = sent.acks.iter().zip(&topics);
        left.retain(|(record, reason)| {
            let Some((Some(ack), topic)) = acks.next() else { return true };
            tracing::warn!(place = %record.place(), reason, "dead letter");
            tell(record, topic, *ack, &sender, began);
            false
        });
        if left.is_empty() && sent.failure.is_none() {
            self.producer = Some(producer);
            return None;
        }
        producer.retire().await;
        sent.why()
    }
}

/// The letter is a span in the trace of what became one.
fn tell(record: &Received, topic: &str, ack: Ack, sender: &spans::Sender, began: SystemTime) {
    let created = header::trace(|name| record.header(name));
    if !spans::sampled(&created) {
        return;
    }
    let message = spans::Message {
        topic,
        partition: Some(ack.partition),
        offset: Some(ack.offset),
        key: &String::from_utf8_lossy(&record.key),
        event_id: record.header(header::EVENT_ID).unwrap_or_default(),
    };
    let send = spans::Send { message, created: &created, sender, waited: None, error: None };
    spans::send(&send, began);
}

fn letter<'a>(record: &'a Received, topic: &'a str, reason: &str, consumer: &'a str) -> Record<'a> {
    let mut headers: Vec<(&str, Cow<'_, [u8]>)> =
        record.header_pairs().map(|(name, value)| (name, Cow::Borrowed(value))).collect();
    let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let reason: String = reason.chars().take(1000).collect();
    headers.push((header::DEAD_REASON, Cow::Owned(reason.into_bytes())));
    headers.push((header::DEAD_AT, Cow::Owned(now.into_bytes())));
    headers.push((header::DEAD_ORIGIN, Cow::Owned(record.place().to_string().into_bytes())));
    headers.push((header::DEAD_CONSUMER, Cow::Borrowed(consumer.as_bytes())));
    Record { topic, key: &record.key, payload: &record.payload, headers }
}
