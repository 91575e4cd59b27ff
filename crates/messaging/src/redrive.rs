//! Dead letters read back, and put again to where they came from.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use events::{Place, header};
use tokio::time::Instant;

use crate::{Error, KafkaOptions, Producer, Received, Record, SendOutcome, read_all, received::first_place};

/// What one more header takes; the broker's own limit for a record leaves that much.
const EXTRA_BYTES: usize = 512;

/// The headers that a dead letter has behind those of its original, in order.
const ADDED: [&str; 4] = [header::DEAD_REASON, header::DEAD_AT, header::DEAD_ORIGIN, header::DEAD_CONSUMER];

/// A dead letter, as it stands in its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The whole record.
    pub received: Received,
    /// Why it was given up.
    pub reason: String,
    /// When, in RFC 3339.
    pub at: String,
    /// Who gave it up.
    pub consumer: String,
    /// Where the record stood that was given up.
    pub origin: Place,
    /// Where that record first stood: elsewhere, if it had been put back before.
    pub first_place: Place,
}

impl Letter {
    /// Reads a record of a dead letter topic; none if it is no dead letter of Brew's.
    #[must_use]
    pub fn read(received: Received) -> Option<Self> {
        let (original, added) =
            received.headers.split_at_checked(received.headers.len().checked_sub(ADDED.len())?)?;
        if !added.iter().map(|(name, _)| name.as_str()).eq(ADDED) {
            return None;
        }
        let text = |at: usize| added.get(at).map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let (reason, at, consumer) = (text(0)?, text(1)?, text(3)?);
        let origin: Place = text(2)?.parse().ok()?;
        let first_place = first_place(original, origin.clone());
        Some(Self { received, reason, at, consumer, origin, first_place })
    }

    /// The headers of the record that was given up, in order.
    #[must_use]
    pub fn original_headers(&self) -> &[(String, Vec<u8>)] {
        &self.received.headers[..self.received.headers.len().saturating_sub(ADDED.len())]
    }

    /// The record that was given up, byte for byte, for the topic that it came from. One header is added: where it
    /// first stood.
    fn original(&self) -> Record<'_> {
        let mut headers: Vec<(&str, Cow<'_, [u8]>)> = self
            .original_headers()
            .iter()
            .map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_slice())))
            .collect();
        if !headers.iter().any(|(name, _)| *name == header::REDRIVEN_FROM) {
            let first = self.first_place.to_string();
            headers.push((header::REDRIVEN_FROM, Cow::Owned(first.into_bytes())));
        }
        let (key, payload) = (&self.received.key, &self.received.payload);
        Record { topic: &self.origin.topic, key, payload, headers }
    }
}

/// The dead letters of `topic` that are still to be dealt with, in the order in which their records first stood. Of
/// several about one record the last counts: the others are copies of it, or it was put back and given up again.
/// `settled` are those that were dealt with, by where the letter stands and what it was of.
///
/// # Errors
/// Those of [`read_all`].
pub async fn dead_letters(
    options: &KafkaOptions,
    topic: &str,
    settled: &BTreeSet<(Place, Place)>,
    timeout: Duration,
) -> Result<Vec<Letter>, Error> {
    let mut last: BTreeMap<Place, Letter> = BTreeMap::new();
    for received in read_all(options, topic, timeout).await? {
        let place = received.place();
        match Letter::read(received) {
            Some(letter) => drop(last.insert(letter.first_place.clone(), letter)),
            None => tracing::warn!(%place, "no dead letter of ours"),
        }
    }
    let open = |letter: &Letter| !settled.contains(&(letter.received.place(), letter.origin.clone()));
    Ok(last.into_values().filter(open).collect())
}

/// Puts the records of `letters` again to the topics that they came from, in the order given, and waits for their acks
/// until `timeout`. Those of one aggregate are written in that order, or not at all from the first that fails on.
/// Sent again after a crash they are copies, which the consumer's inbox knows.
///
/// # Errors
/// The broker is away; what else fails is in the outcome.
pub async fn redrive(
    options: &KafkaOptions,
    letters: &[&Letter],
    timeout: Duration,
) -> Result<SendOutcome, Error> {
    let mut options = options.clone();
    options.max_message_bytes += EXTRA_BYTES;
    let deadline = Instant::now() + timeout;
    let mut producer = Producer::connect(&options, "brew-redrive", timeout).await?;
    let records: Vec<Record<'_>> = letters.iter().map(|letter| letter.original()).collect();
    let outcome = producer.send(&records, deadline).await;
    producer.retire().await;
    Ok(outcome)
}
