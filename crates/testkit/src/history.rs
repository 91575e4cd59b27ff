//! What a topic's records say about order and loss.

use std::collections::{BTreeMap, BTreeSet};

use events::header;
use messaging::Received;

/// A topic, read whole.
#[derive(Debug, Default)]
pub struct History {
    /// Outbox ids, each once.
    pub ids: BTreeSet<i64>,
    /// Records beyond the first of their id.
    pub repeats: usize,
    /// Per aggregate, its ids in the order in which each was first seen.
    pub first_seen: BTreeMap<String, Vec<i64>>,
}

/// Reads `records`, which are in offset order per partition.
///
/// # Panics
/// When a record lacks its headers, or one aggregate is in two partitions.
#[must_use]
pub fn history(records: &[Received]) -> History {
    let mut history = History::default();
    let mut partitions: BTreeMap<&str, i32> = BTreeMap::new();
    for record in records {
        let aggregate = record.header(header::AGGREGATE_ID).expect("an aggregate id");
        let id: i64 = record.header(header::OUTBOX_ID).expect("an outbox id").parse().unwrap();
        assert_eq!(record.key, aggregate.as_bytes());
        let partition = *partitions.entry(aggregate).or_insert(record.partition);
        assert_eq!(partition, record.partition, "{aggregate} is in two partitions");
        if history.ids.insert(id) {
            history.first_seen.entry(aggregate.to_owned()).or_default().push(id);
        } else {
            history.repeats += 1;
        }
    }
    history
}

impl History {
    /// Aggregates in which a later event was seen before an earlier one.
    #[must_use]
    pub fn out_of_order(&self) -> Vec<&str> {
        self.first_seen
            .iter()
            .filter(|(_, ids)| !ids.is_sorted())
            .map(|(aggregate, _)| aggregate.as_str())
            .collect()
    }
}
