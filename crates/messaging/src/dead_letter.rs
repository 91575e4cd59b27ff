//! Dead letters: records that a consumer cannot read or apply, kept with the reason.

use std::{borrow::Cow, time::Duration};

use events::{header, topic};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Error, KafkaOptions, Producer, Received, Record, consumer::backoff};

/// Room for the reason beside a record that is itself as large as can be; dead letter topics are declared with it.
pub(crate) const EXTRA_BYTES: usize = 64 * 1024;

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
        let mut options = options.clone();
        options.max_message_bytes += EXTRA_BYTES;
        Self { options, consumer: consumer.to_owned(), producer: None }
    }

    /// Writes `record` to its dead letter topic: same key, value and headers, plus why, when, whence and who. Tries
    /// until the broker has it.
    ///
    /// # Errors
    /// [`Error::DeadLetter`] when `shutdown` comes first: the record must then not be committed.
    pub async fn write(
        &mut self,
        record: &Received,
        reason: &str,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let place = record.place();
        for delay in backoff() {
            match self.try_write(record, reason).await {
                Ok(()) => {
                    tracing::warn!(%place, reason, "dead letter");
                    return Ok(());
                }
                Err(why) => tracing::error!(%place, reason, why, "dead letter not written, trying again"),
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = shutdown.cancelled() => break,
            }
        }
        Err(Error::DeadLetter(place))
    }

    async fn try_write(&mut self, record: &Received, reason: &str) -> Result<(), String> {
        let mut producer = match self.producer.take() {
            Some(producer) => producer,
            None => Producer::connect(&self.options, "brew-dead-letters", ACK_TIMEOUT)
                .await
                .map_err(|error| error.to_string())?,
        };
        let topic = topic::dead_letter(&record.topic, &self.consumer);
        let letter = letter(record, &topic, reason, &self.consumer);
        let sent = producer.send(&[letter], Instant::now() + ACK_TIMEOUT).await;
        if sent.acks.first().is_some_and(Option::is_some) && sent.failure.is_none() {
            self.producer = Some(producer);
            return Ok(());
        }
        producer.retire().await;
        let refused = sent.refused.first().map(|(_, reason)| reason.to_string());
        Err(sent.failure.map(|failure| failure.to_string()).or(refused).unwrap_or_default())
    }
}

fn letter<'a>(record: &'a Received, topic: &'a str, reason: &str, consumer: &'a str) -> Record<'a> {
    let mut headers: Vec<(&str, Cow<'_, [u8]>)> =
        record.header_pairs().map(|(name, value)| (name, Cow::Borrowed(value))).collect();
    let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let reason: String = reason.chars().take(1000).collect();
    headers.push((header::DEAD_REASON, Cow::Owned(reason.into_bytes())));
    headers.push((header::DEAD_AT, Cow::Owned(now.into_bytes())));
    headers.push((header::DEAD_ORIGIN, Cow::Owned(record.place().into_bytes())));
    headers.push((header::DEAD_CONSUMER, Cow::Borrowed(consumer.as_bytes())));
    Record { topic, key: &record.key, payload: &record.payload, headers }
}
