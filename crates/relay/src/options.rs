//! The relay's settings, and how they must fit together.

use std::{collections::BTreeMap, time::Duration};

use messaging::KafkaOptions;
use outbox::SessionOptions;
use serde::Deserialize;

use crate::Error;

/// How long a mark and its commit may take, on top of the send.
const MARGIN_MS: u64 = 5_000;

/// How the relay works; the same for every outbox it serves.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// At most so many rows a claim.
    pub batch_size: usize,
    /// At most so many shards a claim, so that replicas share the work.
    pub max_shards: usize,
    /// Wait before the next look at an outbox that was empty just now; doubles up to `poll_max_ms`.
    pub poll_min_ms: u64,
    /// Longest wait between two looks at an empty outbox.
    pub poll_max_ms: u64,
    /// How long a batch may take to be acknowledged. After a miss it doubles, and the batch is halved.
    pub send_deadline_ms: u64,
    /// Longest that `send_deadline_ms` grows to.
    pub send_deadline_cap_ms: u64,
    /// Postgres ends a claim whose publisher is silent for so long.
    pub idle_in_transaction_timeout_ms: u64,
    /// A database or publisher that is gone without a word is noticed after about this long.
    pub keepalive_ms: u64,
    /// How long connecting, to either side, may take.
    pub connect_timeout_ms: u64,
    /// How long the relay has to end its turn at shutdown.
    pub drain_grace_ms: u64,
    /// How long a row waits for a topic that the broker does not know, before it is parked.
    pub unknown_topic_grace_ms: u64,
    /// Whether the later rows of an aggregate wait behind one that is parked. If not, they overtake it.
    pub parked_aggregates_wait: bool,
}

/// What a reader of the topics meets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Every event, some twice after a failure.
    #[default]
    AtLeastOnce,
    /// For a reader of what is committed (`read_committed`) every event once. A batch is a Kafka transaction; one
    /// replica at a time serves a lane, a quarter of the shards.
    ExactlyOnce,
}

/// One outbox.
#[derive(Debug, Clone)]
pub struct Source {
    /// For logs and health; the `outbox-source` header comes from the database.
    pub name: String,
    /// `postgres://user:password@host:port/name`
    pub url: String,
    /// Past the pooler, if `url` leads to one in transaction mode: for what such a pooler cannot do, which is LISTEN,
    /// and the upkeep of the tables.
    pub direct_url: String,
    /// Whether to listen for wake-ups.
    pub listen: bool,
    /// Whether statements are prepared; see [`SessionOptions`].
    pub prepared: bool,
    /// How many workers, each with a connection and a producer of its own.
    pub workers: usize,
    /// What a reader meets. With [`Delivery::ExactlyOnce`] there is a worker for each lane, whatever `workers` says.
    pub delivery: Delivery,
}

impl Source {
    /// An outbox that is reached without a pooler, whose relay has one worker and does not listen.
    #[must_use]
    pub fn new(name: &str, url: &str) -> Self {
        let (name, url) = (name.to_owned(), url.to_owned());
        Self {
            name,
            direct_url: url.clone(),
            url,
            listen: false,
            prepared: true,
            workers: 1,
            delivery: Delivery::AtLeastOnce,
        }
    }
}

impl Options {
    /// Checks that the times fit together: a claim must outlive every send, or Postgres frees the shards while a
    /// batch is under way; the server must end a frozen claim before the network gives the peer up.
    ///
    /// # Errors
    /// Everything that does not fit, by key.
    pub fn validate(&self) -> Result<(), Error> {
        let rules = [
            (self.batch_size >= 1 && self.batch_size <= 50_000, "batch_size must be 1 to 50000"),
            (self.max_shards >= 1 && self.max_shards <= 64, "max_shards must be 1 to 64"),
            (self.poll_min_ms >= 1, "poll_min_ms must be at least 1"),
            (self.poll_min_ms <= self.poll_max_ms, "poll_min_ms must not exceed poll_max_ms"),
            (self.send_deadline_ms >= 1, "send_deadline_ms must be at least 1"),
            (
                self.send_deadline_ms <= self.send_deadline_cap_ms,
                "send_deadline_ms must not exceed send_deadline_cap_ms",
            ),
            (
                self.send_deadline_cap_ms + MARGIN_MS < self.idle_in_transaction_timeout_ms,
                "idle_in_transaction_timeout_ms must exceed send_deadline_cap_ms by more than 5000",
            ),
            (
                self.idle_in_transaction_timeout_ms < self.keepalive_ms,
                "keepalive_ms must exceed idle_in_transaction_timeout_ms",
            ),
            (self.send_deadline_ms < self.drain_grace_ms, "drain_grace_ms must exceed send_deadline_ms"),
        ];
        all_hold(&rules)
    }

    pub(crate) fn session(&self, source: &Source) -> SessionOptions {
        SessionOptions {
            url: source.url.clone(),
            connect_timeout: self.connect_timeout(),
            idle_in_transaction_timeout: Duration::from_millis(self.idle_in_transaction_timeout_ms),
            keepalive: Duration::from_millis(self.keepalive_ms),
            prepared: source.prepared,
        }
    }

    /// Past the pooler.
    pub(crate) fn direct_session(&self, source: &Source) -> SessionOptions {
        SessionOptions { url: source.direct_url.clone(), ..self.session(source) }
    }

    /// When the broker ends a transaction of its own accord: not before any batch is decided.
    pub(crate) fn longest_transaction(&self) -> Duration {
        Duration::from_millis(self.send_deadline_cap_ms + MARGIN_MS)
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.connect_timeout_ms)
    }
}

/// Fails with all rules that do not hold.
pub(crate) fn all_hold(rules: &[(bool, &str)]) -> Result<(), Error> {
    let broken: Vec<String> =
        rules.iter().filter(|(holds, _)| !holds).map(|(_, rule)| (*rule).to_owned()).collect();
    if broken.is_empty() { Ok(()) } else { Err(Error::Options(broken)) }
}

/// Where the records go.
#[derive(Debug, Clone)]
pub struct Target {
    /// How to reach the broker.
    pub kafka: KafkaOptions,
    /// Topics that must have a certain number of partitions before anything is published.
    pub declared: BTreeMap<String, usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Options {
        Options {
            batch_size: 2000,
            max_shards: 32,
            poll_min_ms: 2,
            poll_max_ms: 50,
            send_deadline_ms: 5_000,
            send_deadline_cap_ms: 20_000,
            idle_in_transaction_timeout_ms: 30_000,
            keepalive_ms: 45_000,
            connect_timeout_ms: 5_000,
            drain_grace_ms: 10_000,
            unknown_topic_grace_ms: 600_000,
            parked_aggregates_wait: true,
        }
    }

    #[test]
    fn times_that_do_not_fit_are_named_all_at_once() {
        assert!(good().validate().is_ok());
        let bad = Options { batch_size: 0, keepalive_ms: 30_000, drain_grace_ms: 1, ..good() };
        let error = bad.validate().unwrap_err().to_string();
        for key in ["batch_size", "keepalive_ms", "drain_grace_ms"] {
            assert!(error.contains(key), "{key} not in {error}");
        }
    }
}
