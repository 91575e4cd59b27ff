//! Identifiers, each a type of its own, so that none is taken for another.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is no identifier of the wanted kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not {wanted}")]
pub struct IdError {
    text: String,
    wanted: &'static str,
}

/// An order; written `order-42`, which is also its aggregate id and record key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct OrderId(pub i64);

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order-{}", self.0)
    }
}

impl From<OrderId> for String {
    fn from(id: OrderId) -> Self {
        id.to_string()
    }
}

impl FromStr for OrderId {
    type Err = IdError;

    /// Takes exactly what `Display` writes: no sign, no leading zero, no space.
    fn from_str(text: &str) -> Result<Self, IdError> {
        text.strip_prefix("order-")
            .and_then(|digits| digits.parse::<i64>().ok())
            .filter(|id| *id > 0)
            .map(OrderId)
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| IdError {
                text: text.chars().take(64).collect(),
                wanted: "an order id like `order-42`",
            })
    }
}

impl TryFrom<String> for OrderId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

/// An outbox row's id: unique within one outbox and one life of it, no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId(pub i64);

impl fmt::Display for OutboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An event's UUID: unique everywhere, the same for every copy of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub Uuid);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A thing on the menu, for example `espresso`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sku(pub String);

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_id_reads_only_what_it_writes() {
        assert_eq!("order-42".parse(), Ok(OrderId(42)));
        for bad in ["42", "order-", "order-0", "order--1", "order-042", "order-+4", "Order-4", "order-4 "] {
            assert!(bad.parse::<OrderId>().is_err(), "{bad}");
        }
    }
}
