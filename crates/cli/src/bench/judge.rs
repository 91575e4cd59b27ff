//! Whether a topic holds what it should: figures are shown only where it does.

use std::collections::HashMap;

use events::header;
use messaging::Received;
use serde::Serialize;

/// What was looked at, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    pub(crate) events: u64,
    pub(crate) lost: u64,
    /// Records beyond the first of their event. Nothing fails in a bench, so there is no reason for any.
    pub(crate) duplicates: u64,
    /// Events that were first seen after a later one of their aggregate.
    pub(crate) out_of_order: u64,
    /// Anything else, in words.
    pub(crate) other: Vec<String>,
}

impl Check {
    pub(crate) fn holds(&self) -> bool {
        self.lost == 0 && self.duplicates == 0 && self.out_of_order == 0 && self.other.is_empty()
    }

    /// Notes `count` of something that there should be none of.
    pub(crate) fn none(&mut self, count: u64, of: &str) {
        if count > 0 {
            self.other.push(format!("{count} {of}"));
        }
    }
}

/// Figures, with the check that entitles them to be shown: without it there are none.
#[derive(Debug, Serialize)]
pub(crate) struct Checked<T> {
    pub(crate) check: Check,
    pub(crate) figures: Option<T>,
}

impl<T> Checked<T> {
    pub(crate) fn new(check: Check, figures: T) -> Self {
        let figures = check.holds().then_some(figures);
        Self { check, figures }
    }
}

/// The last that was seen of an aggregate.
struct Last {
    id: i64,
    partition: i32,
}

/// Takes the records of a topic one by one, each partition's in offset order; they should be the outbox rows 1 to
/// `events`, each once.
pub(crate) struct Judge {
    seen: Vec<bool>,
    last: HashMap<Vec<u8>, Last>,
    duplicates: u64,
    out_of_order: u64,
    strangers: u64,
    astray: u64,
    unlike: u64,
}

impl Judge {
    pub(crate) fn of(events: u64) -> Self {
        Self {
            seen: vec![false; usize::try_from(events).unwrap_or(usize::MAX)],
            last: HashMap::new(),
            duplicates: 0,
            out_of_order: 0,
            strangers: 0,
            astray: 0,
            unlike: 0,
        }
    }

    pub(crate) fn take(&mut self, record: &Received) {
        if record.header(header::AGGREGATE_ID).map(str::as_bytes) != Some(record.key.as_slice()) {
            self.unlike += 1;
        }
        let id = record.header(header::OUTBOX_ID).and_then(|id| id.parse::<i64>().ok()).unwrap_or_default();
        let place = usize::try_from(id - 1).ok().and_then(|place| self.seen.get_mut(place));
        let Some(seen) = place else {
            self.strangers += 1;
            return;
        };
        if std::mem::replace(seen, true) {
            self.duplicates += 1;
            return;
        }
        let partition = record.partition;
        let Some(last) = self.last.get_mut(&record.key) else {
            self.last.insert(record.key.clone(), Last { id, partition });
            return;
        };
        if last.partition != partition {
            self.astray += 1;
        }
        if id < last.id {
            self.out_of_order += 1;
        } else {
            last.id = id;
        }
    }

    pub(crate) fn verdict(self) -> Check {
        let mut check = Check {
            events: self.seen.len() as u64,
            lost: self.seen.iter().filter(|seen| !**seen).count() as u64,
            duplicates: self.duplicates,
            out_of_order: self.out_of_order,
            other: Vec::new(),
        };
        check.none(self.strangers, "of no outbox row");
        check.none(self.astray, "in a second partition of their aggregate");
        check.none(self.unlike, "whose header names another aggregate than the key");
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, key: &str, partition: i32) -> Received {
        let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        Received {
            topic: "bench".to_owned(),
            partition,
            offset: 0,
            key: key.as_bytes().to_vec(),
            payload: b"{}".to_vec(),
            headers: vec![header(header::OUTBOX_ID, id), header(header::AGGREGATE_ID, key)],
        }
    }

    fn verdict(records: &[(&str, &str, i32)]) -> Check {
        let mut judge = Judge::of(4);
        records.iter().for_each(|(id, key, partition)| judge.take(&record(id, key, *partition)));
        judge.verdict()
    }

    const GOOD: [(&str, &str, i32); 4] = [("1", "a", 0), ("3", "b", 1), ("2", "a", 0), ("4", "b", 1)];

    #[test]
    fn each_event_once_and_each_aggregate_in_order_holds() {
        assert_eq!(verdict(&GOOD), Check { events: 4, ..Check::default() });
        assert!(verdict(&GOOD).holds());
    }

    #[test]
    fn what_is_wrong_is_counted() {
        let with = |more: (&'static str, &'static str, i32)| {
            verdict(&GOOD.into_iter().chain([more]).collect::<Vec<_>>())
        };
        let lost = verdict(&GOOD[..3]);
        assert_eq!((lost.lost, lost.holds()), (1, false));
        let twice = with(("2", "a", 0));
        assert_eq!((twice.duplicates, twice.out_of_order, twice.holds()), (1, 0, false));
        let backwards = verdict(&[("2", "a", 0), ("1", "a", 0), ("3", "b", 1), ("4", "b", 1)]);
        assert_eq!((backwards.out_of_order, backwards.lost, backwards.holds()), (1, 0, false));
        for stranger in ["5", "0", "-1", "x", ""] {
            assert_eq!(with((stranger, "a", 0)).other, ["1 of no outbox row"]);
        }
        let astray = verdict(&[("1", "a", 0), ("2", "a", 1), ("3", "b", 1), ("4", "b", 1)]);
        assert_eq!(astray.other, ["1 in a second partition of their aggregate"]);
    }

    #[test]
    fn a_record_must_be_what_its_header_says() {
        let mut judge = Judge::of(1);
        judge.take(&Received { key: b"b".to_vec(), ..record("1", "a", 0) });
        assert_eq!(judge.verdict().other, ["1 whose header names another aggregate than the key"]);
    }

    #[test]
    fn there_are_no_figures_without_a_check_that_holds() {
        assert_eq!(Checked::new(verdict(&GOOD), 7).figures, Some(7));
        assert_eq!(Checked::new(verdict(&GOOD[..3]), 7).figures, None);
    }
}
