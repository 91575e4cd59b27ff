//! A record as it came, free of the client library.

use events::{Place, header};
use rdkafka::{Message, message::BorrowedMessage, message::Headers};

/// A record that was read from a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Where it stood.
    pub topic: String,
    /// Where it stood.
    pub partition: i32,
    /// Where it stood.
    pub offset: i64,
    /// Empty if it has none.
    pub key: Vec<u8>,
    /// Empty if it has none.
    pub payload: Vec<u8>,
    /// In their order; a header without value has an empty one.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Received {
    pub(crate) fn from_message(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers
                .iter()
                .map(|header| (header.key.to_owned(), header.value.unwrap_or_default().to_owned()))
                .collect()
        });
        Self {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().unwrap_or_default().to_owned(),
            payload: message.payload().unwrap_or_default().to_owned(),
            headers,
        }
    }

    /// The headers, borrowed, as an envelope reads them.
    pub fn header_pairs(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The first header of that name, if it is a text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_pairs()
            .find(|(found, _)| *found == name)
            .and_then(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { topic: self.topic.clone(), partition: self.partition, offset: self.offset }
    }

    /// Where it first stood: here, unless it was put back from a dead letter topic. What decides the order within an
    /// aggregate.
    #[must_use]
    pub fn first_place(&self) -> Place {
        first_place(&self.headers, self.place())
    }

    /// Its outbox id, if it has one.
    #[must_use]
    pub fn outbox_id(&self) -> Option<i64> {
        self.header(header::OUTBOX_ID)?.parse().ok()
    }

    /// Whose record it is, by its key; none if no aggregate can be named so.
    #[must_use]
    pub fn aggregate(&self) -> Option<&str> {
        let key = std::str::from_utf8(&self.key).ok()?;
        let good = !key.is_empty() && key.len() <= 1024 && !key.contains('\0');
        good.then_some(key)
    }
}

/// Where a record with these headers first stood that now stands at `here`. A place in another partition says nothing
/// about the order in this one.
pub(crate) fn first_place(headers: &[(String, Vec<u8>)], here: Place) -> Place {
    let told = headers.iter().rfind(|(name, _)| name == header::REDRIVEN_FROM);
    let told = told.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse::<Place>().ok());
    match told {
        Some(first) if first.topic == here.topic && first.partition == here.partition => first,
        _ => here,
    }
}
