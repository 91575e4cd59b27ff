//! Where a record stands.

use std::{fmt, str::FromStr};

/// Where a record stands; written `topic/partition/offset`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which topic.
    pub topic: String,
    /// Which of its partitions.
    pub partition: i32,
    /// Where in it.
    pub offset: i64,
}

/// A text that is no place.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a place like `topic/0/42`")]
pub struct PlaceError(String);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic, self.partition, self.offset)
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let mut parts = text.rsplitn(3, '/');
        let offset = parts.next().and_then(|offset| offset.parse().ok());
        let partition = parts.next().and_then(|partition| partition.parse().ok());
        match (parts.next(), partition, offset) {
            (Some(topic), Some(partition), Some(offset)) if !topic.is_empty() => {
                Ok(Self { topic: topic.to_owned(), partition, offset })
            }
            _ => Err(PlaceError(text.chars().take(64).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_what_it_writes() {
        let place = Place { topic: "brew.orders.v1".to_owned(), partition: 3, offset: 17 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for bad in ["", "3/17", "/3/17", "orders/x/17", "orders/3/"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
