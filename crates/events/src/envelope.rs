//! The envelope: who sent an event, which one it is, and where it belongs in a trace. It crosses every
//! wall unchanged: outbox row, record, handler.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::{Event, EventId, OutboxId, header};

/// Why a record is no event of ours. Each of these is poison: reading it again gives the same.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A header that every record of Brew has is not there.
    #[error("header `{0}` is missing")]
    MissingHeader(&'static str),
    /// A header is there, but not what it should be.
    #[error("header `{name}` is {problem}")]
    BadHeader {
        /// Which header.
        name: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No payload of this type is known here.
    #[error("unknown event type `{0}`")]
    UnknownEventType(String),
    /// The header says one type, the payload another.
    #[error("header `event-type` says `{header}`, the payload `{payload}`")]
    TypeMismatch {
        /// The header's.
        header: String,
        /// The payload's.
        payload: &'static str,
    },
    /// Key or `aggregate-id` and the payload speak of different aggregates.
    #[error("the record's key and its payload speak of different aggregates")]
    AggregateMismatch,
    /// Not the JSON that this event type has.
    #[error("payload cannot be read: {0}")]
    Payload(#[from] serde_json::Error),
}

/// An event's identity and context, without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The row it stood in.
    pub outbox_id: OutboxId,
    /// The outbox that row stood in.
    pub source: String,
    /// Unique everywhere.
    pub event_id: EventId,
    /// What happened.
    pub event_type: String,
    /// Whose event it is; the record's key.
    pub aggregate_id: String,
    /// `traceparent` and `tracestate`, as they came.
    pub trace: BTreeMap<String, String>,
}

impl Envelope {
    /// Reads the envelope from a record's headers. Names are matched exactly; of a repeated header the
    /// first counts; headers that are not ours are ignored.
    ///
    /// # Errors
    /// The first header that is missing or malformed.
    pub fn from_headers<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<Self, DecodeError> {
        let mut found: BTreeMap<&str, &[u8]> = BTreeMap::new();
        for (name, value) in headers {
            found.entry(name).or_insert(value);
        }
        let outbox_id = text(&found, header::OUTBOX_ID)?
            .parse::<i64>()
            .map_err(|_| bad(header::OUTBOX_ID, "not a decimal number"))?;
        let event_id = Uuid::parse_str(text(&found, header::EVENT_ID)?)
            .map_err(|_| bad(header::EVENT_ID, "not a UUID"))?;
        let trace = header::trace(|name| std::str::from_utf8(found.get(name)?).ok());
        Ok(Self {
            outbox_id: OutboxId(outbox_id),
            source: text(&found, header::OUTBOX_SOURCE)?.to_owned(),
            event_id: EventId(event_id),
            event_type: text(&found, header::EVENT_TYPE)?.to_owned(),
            aggregate_id: text(&found, header::AGGREGATE_ID)?.to_owned(),
            trace,
        })
    }

    /// Reads the payload that this envelope came with.
    ///
    /// # Errors
    /// An unknown type, a payload that is not of that type, or one that is about another aggregate.
    pub fn decode(&self, payload: &[u8]) -> Result<Event, DecodeError> {
        if !Event::knows(&self.event_type) {
            return Err(DecodeError::UnknownEventType(self.event_type.clone()));
        }
        let event: Event = serde_json::from_slice(payload)?;
        if event.event_type() != self.event_type {
            return Err(DecodeError::TypeMismatch {
                header: self.event_type.clone(),
                payload: event.event_type(),
            });
        }
        if event.order_id().to_string() != self.aggregate_id {
            return Err(DecodeError::AggregateMismatch);
        }
        Ok(event)
    }
}

fn text<'a>(found: &BTreeMap<&str, &'a [u8]>, name: &'static str) -> Result<&'a str, DecodeError> {
    let bytes = found.get(name).ok_or(DecodeError::MissingHeader(name))?;
    let text = std::str::from_utf8(bytes).map_err(|_| bad(name, "not UTF-8"))?;
    // The keys of the inbox are text in Postgres, which takes no U+0000, and an index, which takes no novels.
    match text {
        "" => Err(bad(name, "empty")),
        long if long.len() > 1024 => Err(bad(name, "longer than 1024 bytes")),
        zero if zero.contains('\0') => Err(bad(name, "holding U+0000")),
        good => Ok(good),
    }
}

fn bad(name: &'static str, problem: &'static str) -> DecodeError {
    DecodeError::BadHeader { name, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &[u8]); 6] = [
        (header::OUTBOX_ID, b"12"),
        (header::AGGREGATE_ID, b"order-7"),
        (header::OUTBOX_SOURCE, b"order-service"),
        (header::EVENT_ID, b"01890a5d-ac96-774b-bcce-b302099a8057"),
        (header::EVENT_TYPE, b"stock.reserved"),
        (header::TRACEPARENT, b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];

    fn with(name: &str, value: &'static [u8]) -> Result<Envelope, DecodeError> {
        Envelope::from_headers(GOOD.into_iter().map(|(n, v)| (n, if n == name { value } else { v })))
    }

    #[test]
    fn every_header_is_asked_for_by_name() {
        for (missing, _) in &GOOD[..5] {
            let rest = GOOD.into_iter().filter(|(name, _)| name != missing);
            let error = Envelope::from_headers(rest).unwrap_err().to_string();
            assert!(error.contains(missing), "{error}");
        }
    }

    #[test]
    fn malformed_headers_are_named() {
        let cases: [(&str, &'static [u8]); 5] = [
            (header::OUTBOX_ID, b"twelve"),
            (header::EVENT_ID, b"12"),
            (header::OUTBOX_SOURCE, b"\xff"),
            (header::EVENT_TYPE, b""),
            (header::AGGREGATE_ID, b"a\0b"),
        ];
        for (name, value) in cases {
            assert!(with(name, value).unwrap_err().to_string().contains(name));
        }
        assert!(with(header::TRACEPARENT, b"\xff").unwrap().trace.is_empty());
    }

    #[test]
    fn payload_must_match_type_and_aggregate() {
        let envelope = with("", b"").unwrap();
        let good = br#"{"type":"stock.reserved","order_id":"order-7","version":1,"lines":[]}"#;
        assert!(envelope.decode(good).is_ok());
        let other = br#"{"type":"stock.reserved","order_id":"order-8","version":1,"lines":[]}"#;
        assert!(matches!(envelope.decode(other), Err(DecodeError::AggregateMismatch)));
        let mismatch = br#"{"type":"stock.rejected","order_id":"order-7","version":1,"short":[]}"#;
        assert!(matches!(envelope.decode(mismatch), Err(DecodeError::TypeMismatch { .. })));
        assert!(matches!(envelope.decode(b"{"), Err(DecodeError::Payload(_))));
        let unknown = with(header::EVENT_TYPE, b"stock.vanished").unwrap();
        assert!(matches!(unknown.decode(good), Err(DecodeError::UnknownEventType(_))));
    }
}
