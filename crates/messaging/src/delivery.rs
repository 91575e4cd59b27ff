//! A record as one of Brew's events, and counting what became of events.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use events::{DecodeError, Envelope, Event, Place};

use crate::Received;

/// An event, with its envelope and where it came from.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which event.
    pub envelope: Envelope,
    /// What it says.
    pub event: Event,
    /// Where it stands.
    pub place: Place,
    /// Where it first stood: elsewhere, if it was put back from a dead letter topic.
    pub first_place: Place,
}

impl Delivery {
    /// Reads a record.
    ///
    /// # Errors
    /// Why the record is no event of ours, and never will be.
    pub fn decode(record: &Received) -> Result<Self, DecodeError> {
        let envelope = Envelope::from_headers(record.header_pairs())?;
        if record.key != envelope.aggregate_id.as_bytes() {
            return Err(DecodeError::AggregateMismatch);
        }
        let event = envelope.decode(&record.payload)?;
        Ok(Self { envelope, event, place: record.place(), first_place: record.first_place() })
    }
}

/// What a consumer has come to so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Events that took effect.
    pub inserted: AtomicU64,
    /// Events that had taken effect before.
    pub skipped: AtomicU64,
    /// Records that became dead letters.
    pub dead_letters: AtomicU64,
}

impl Tally {
    /// Counts a batch that was applied; `new` says of each event whether it took effect now, or nothing if it was held
    /// back. Prints an `INSERT` or `DUP` line for each if `print`.
    pub fn applied(&self, batch: &[Arc<Delivery>], new: impl IntoIterator<Item = Option<bool>>, print: bool) {
        for (delivery, new) in batch.iter().zip(new) {
            let Some(new) = new else { continue };
            let count = if new { &self.inserted } else { &self.skipped };
            count.fetch_add(1, Relaxed);
            if print {
                let envelope = &delivery.envelope;
                // A reader that has gone away is no reason to stop consuming.
                let _gone = writeln!(
                    std::io::stdout().lock(),
                    "{} outbox_id={} aggregate={} type={} at={}",
                    if new { "INSERT" } else { "DUP" },
                    envelope.outbox_id,
                    envelope.aggregate_id,
                    envelope.event_type,
                    delivery.place
                );
            }
        }
    }

    /// Prints the sums in one line.
    pub fn print(&self) {
        let (inserted, skipped) = (self.inserted.load(Relaxed), self.skipped.load(Relaxed));
        let dead = self.dead_letters.load(Relaxed);
        let mut line =
            format!("processed={} inserted={inserted} skipped={skipped}", inserted + skipped + dead);
        if dead > 0 {
            line += &format!(" dead_letters={dead}");
        }
        let _gone = writeln!(std::io::stdout().lock(), "{line}");
    }
}
