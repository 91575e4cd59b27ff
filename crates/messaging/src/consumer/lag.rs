//! How far a member is behind, as the client's own statistics say.

use std::{collections::BTreeMap, sync::LazyLock};

use opentelemetry::{KeyValue, metrics::Gauge};
use rdkafka::{ClientContext, Statistics, consumer::ConsumerContext};
use telemetry::{catalogue, metrics};

static LAG: LazyLock<Gauge<f64>> = LazyLock::new(|| metrics::gauge(&catalogue::CONSUMER_LAG));

/// Tells the lag whenever the client has statistics.
pub(super) struct Lag {
    group: String,
}

impl Lag {
    pub(super) fn new(group: &str) -> Self {
        Self { group: group.to_owned() }
    }
}

impl ClientContext for Lag {
    fn stats(&self, statistics: Statistics) {
        for (topic, records) in behind(&statistics) {
            LAG.record(
                records as f64,
                &[KeyValue::new("group", self.group.clone()), KeyValue::new("topic", topic.to_owned())],
            );
        }
    }
}

impl ConsumerContext for Lag {}

/// Records that this member has not settled, by topic: of its own partitions, so that the sum over all members is the
/// group's.
fn behind(statistics: &Statistics) -> BTreeMap<&str, i64> {
    let lag = |topic: &rdkafka::statistics::Topic| {
        let own = topic.partitions.values().filter(|partition| partition.fetch_state == "active");
        // Settled here; if nothing was yet, by whoever was there before. -1: not known yet.
        own.map(|partition| match (partition.consumer_lag_stored, partition.consumer_lag) {
            (-1, -1) => 0,
            (-1, committed) => committed,
            (stored, _) => stored,
        })
        .sum()
    };
    statistics.topics.iter().map(|(name, topic)| (name.as_str(), lag(topic))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(fetch_state: &str, stored: i64, committed: i64) -> rdkafka::statistics::Partition {
        rdkafka::statistics::Partition {
            fetch_state: fetch_state.to_owned(),
            consumer_lag_stored: stored,
            consumer_lag: committed,
            ..Default::default()
        }
    }

    #[test]
    fn own_partitions_count_by_what_is_settled() {
        let partitions = [
            partition("active", 3, 9),
            partition("active", -1, 5),
            partition("active", -1, -1),
            partition("none", 100, 100),
        ];
        let topic = rdkafka::statistics::Topic {
            partitions: partitions.into_iter().enumerate().map(|(at, one)| (at as i32, one)).collect(),
            ..Default::default()
        };
        let statistics =
            Statistics { topics: [("orders".to_owned(), topic)].into_iter().collect(), ..Default::default() };
        assert_eq!(behind(&statistics), [("orders", 8)].into());
    }
}
