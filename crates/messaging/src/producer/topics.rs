//! The topics that a producer knows, and to which of their partitions it has written.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::partition_of;

/// The broker forgets an idle producer after `producer.id.expiration.ms` (one day by default); a partition that was
/// silent for so long is treated as new.
const WARM_FOR: Duration = Duration::from_secs(3600);

/// A partition of a topic; good for as long as its [`Topics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    topic: usize,
    pub(super) partition: usize,
}

#[derive(Default)]
pub(super) struct Topics {
    numbers: HashMap<String, usize>,
    topics: Vec<Topic>,
}

#[derive(Default)]
struct Topic {
    /// None: it is not there.
    partitions: usize,
    /// By partition: when the last ack came.
    warm: Vec<Option<Instant>>,
}

impl Topics {
    /// What the broker says now: all topics, with how many partitions each has.
    pub(super) fn found(&mut self, found: Vec<(String, usize)>) {
        for topic in &mut self.topics {
            topic.partitions = 0;
        }
        for (name, partitions) in found {
            let number = *self.numbers.entry(name).or_insert_with(|| {
                self.topics.push(Topic::default());
                self.topics.len() - 1
            });
            if let Some(topic) = self.topics.get_mut(number) {
                topic.partitions = partitions;
                topic.warm.resize(partitions, None);
            }
        }
    }

    pub(super) fn partitions(&self, name: &str) -> Option<usize> {
        self.find(name).map(|(_, partitions)| partitions)
    }

    /// A topic's number, and how many partitions it has.
    fn find(&self, name: &str) -> Option<(usize, usize)> {
        let number = *self.numbers.get(name)?;
        let partitions = self.topics.get(number)?.partitions;
        (partitions > 0).then_some((number, partitions))
    }

    /// Where records of these topics and keys go, where the topic is known.
    pub(super) fn places<'r>(
        &self,
        records: impl Iterator<Item = (&'r str, &'r [u8])>,
    ) -> Vec<Option<Place>> {
        // A batch has few topics, mostly one after the other the same: asked for once.
        let mut last: Option<(&str, usize, usize)> = None;
        let place = |(name, key): (&'r str, &'r [u8])| {
            if last.is_none_or(|(known, ..)| known != name) {
                last = self.find(name).map(|(topic, partitions)| (name, topic, partitions));
            }
            last.map(|(_, topic, partitions)| Place { topic, partition: partition_of(key, partitions) })
        };
        records.map(place).collect()
    }

    pub(super) fn is_warm(&self, place: Place, now: Instant) -> bool {
        let last = self.topics.get(place.topic).and_then(|topic| *topic.warm.get(place.partition)?);
        last.is_some_and(|since| now.duration_since(since) < WARM_FOR)
    }

    /// An ack came from there.
    pub(super) fn warmed(&mut self, place: Place, now: Instant) {
        let topic = self.topics.get_mut(place.topic);
        if let Some(last) = topic.and_then(|topic| topic.warm.get_mut(place.partition)) {
            *last = Some(now);
        }
    }
}
