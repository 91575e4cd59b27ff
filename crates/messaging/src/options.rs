//! How to reach Kafka.

use std::collections::BTreeMap;

use rdkafka::ClientConfig;
use serde::Deserialize;

/// How to reach Kafka, for producers, consumers and administration alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaOptions {
    /// `host:port`, several separated by commas.
    pub brokers: String,
    /// Largest record, key, value and headers together, in bytes; the topics are declared with it.
    pub max_message_bytes: usize,
    /// How many partitions each event topic has. Frozen: a change moves aggregates between partitions.
    pub partitions: usize,
}

impl KafkaOptions {
    /// The first of `brokers`: what a span calls the server.
    #[must_use]
    pub fn first_broker(&self) -> &str {
        self.brokers.split(',').next().unwrap_or_default()
    }

    pub(crate) fn client(&self, client_id: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", client_id)
            .set("allow.auto.create.topics", "false")
            .set("socket.keepalive.enable", "true")
            .set("reconnect.backoff.max.ms", "2000");
        config
    }

    /// The producer's settings of `docs/decisions/0003`: all of them are needed for "nothing overtakes a failed
    /// record, and an ack is true".
    pub(crate) fn producer(&self, client_id: &str) -> ClientConfig {
        let mut config = self.client(client_id);
        let fixed: BTreeMap<&str, String> = BTreeMap::from([
            ("enable.idempotence", "true".to_owned()),
            ("acks", "all".to_owned()),
            ("max.in.flight.requests.per.connection", "1".to_owned()),
            ("enable.gapless.guarantee", "true".to_owned()),
            ("message.timeout.ms", "0".to_owned()),
            ("partitioner", "murmur2_random".to_owned()),
            ("linger.ms", "1".to_owned()),
            ("compression.type", "lz4".to_owned()),
            ("message.max.bytes", self.max_message_bytes.to_string()),
            ("batch.size", (self.max_message_bytes / 2).to_string()),
            ("queue.buffering.max.messages", "100000".to_owned()),
            ("queue.buffering.max.kbytes", "65536".to_owned()),
            ("topic.metadata.propagation.max.ms", "5000".to_owned()),
        ]);
        for (key, value) in fixed {
            config.set(key, value);
        }
        config
    }
}
