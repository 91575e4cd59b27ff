//! A broker in this process, for machines without a real one: librdkafka's mock cluster. It speaks the protocol and
//! keeps records in memory (5 MiB a partition); it proves nothing about durability or idempotence.

use std::time::Duration;

use rdkafka::{
    mocking::MockCluster,
    producer::DefaultProducerContext,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};

use crate::Error;

/// A running embedded broker; ends when dropped.
pub struct EmbeddedBroker(MockCluster<'static, DefaultProducerContext>);

impl EmbeddedBroker {
    /// Starts a broker on a free port of the loopback, with these topics.
    ///
    /// # Errors
    /// The client's.
    pub fn start(topics: &[(String, usize)]) -> Result<Self, Error> {
        let cluster = MockCluster::new(1).map_err(Error::kafka("start the embedded broker"))?;
        for (topic, partitions) in topics {
            let partitions = i32::try_from(*partitions).unwrap_or(i32::MAX);
            cluster
                .create_topic(topic, partitions, 1)
                .map_err(Error::kafka("make a topic on the embedded broker"))?;
        }
        Ok(Self(cluster))
    }

    /// `host:port`.
    #[must_use]
    pub fn brokers(&self) -> String {
        self.0.bootstrap_servers()
    }

    /// Answers the next request to write as one whose sequence numbers do not fit, and writes nothing of it; for tests.
    pub fn refuse_as_out_of_order(&self) {
        let error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
        self.0.request_errors(RDKafkaApiKey::Produce, &[error]);
    }

    /// From now on each answer takes `latency`; for tests.
    ///
    /// # Errors
    /// The client's.
    pub fn delay(&self, latency: Duration) -> Result<(), Error> {
        self.0.broker_round_trip_time(1, latency).map_err(Error::kafka("slow the embedded broker down"))
    }
}
