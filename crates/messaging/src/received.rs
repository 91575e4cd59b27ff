//! A record as it came, free of the client library.

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

    /// `topic/partition/offset`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}/{}/{}", self.topic, self.partition, self.offset)
    }
}
