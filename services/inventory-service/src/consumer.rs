//! Record to command: what comes from `brew.orders.v1`.

use events::{DecodeError, Envelope, Event};
use messaging::Received;

/// An event, with its envelope and where it came from.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which event.
    pub envelope: Envelope,
    /// What it says.
    pub event: Event,
    /// `topic/partition/offset`.
    pub place: String,
}

/// Reads a record.
///
/// # Errors
/// Why the record is no event of ours, and never will be.
pub fn decode(record: &Received) -> Result<Delivery, DecodeError> {
    let envelope = Envelope::from_headers(record.header_pairs())?;
    if record.key != envelope.aggregate_id.as_bytes() {
        return Err(DecodeError::AggregateMismatch);
    }
    let event = envelope.decode(&record.payload)?;
    Ok(Delivery { envelope, event, place: record.place() })
}
