//! Kafka: the only room that names the client library. Knows no Postgres.

pub mod admin;
mod consumer;
mod dead_letter;
mod delivery;
mod embedded;
mod ends;
mod options;
mod partition;
mod processing;
mod producer;
mod reader;
mod received;
mod redrive;
mod retention;

pub use consumer::{
    ApplyError, ConsumeMode, Consumer, ConsumerOptions, Consumption, HeldBack, wait_for_topics,
};
pub use dead_letter::DeadLetters;
pub use delivery::{Delivery, Tally};
pub use embedded::EmbeddedBroker;
pub use ends::Ends;
pub use options::KafkaOptions;
pub use partition::partition_of;
pub use processing::Processing;
pub use producer::{Ack, Producer, ProducerFailure, Record, RefusedReason, SendOutcome};
pub use reader::{fold, follow, read_all, read_from};
pub use received::Received;
pub use redrive::{Letter, dead_letters, redrive};
pub use retention::{RetentionFuture, retention_asker, retentions};

/// What went wrong with Kafka.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client's word.
    #[error("kafka: {context}")]
    Kafka {
        /// What was being done.
        context: &'static str,
        /// The client's word.
        source: rdkafka::error::KafkaError,
    },
    /// The broker did not answer a metadata request in time.
    #[error("no broker answers at {0}")]
    BrokerAway(String),
    /// A topic is not as declared.
    #[error("topic `{topic}` has {found} partition(s), declared are {declared}")]
    PartitionCount {
        /// Which topic.
        topic: String,
        /// What the broker says.
        found: usize,
        /// What the settings say.
        declared: usize,
    },
    /// A topic's configuration could not be read.
    #[error("topic `{topic}`: {problem}")]
    Configuration {
        /// Which topic.
        topic: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A topic that should be there is not.
    #[error("topic `{0}` is not there")]
    NoTopic(String),
    /// A dead letter could not be written, and the record it is about must not be lost.
    #[error("dead letter for {0} could not be written")]
    DeadLetter(String),
    /// A background thread of this room panicked: a fault of the program.
    #[error("a Kafka call panicked")]
    Panicked(#[from] tokio::task::JoinError),
}

impl Error {
    pub(crate) fn kafka(context: &'static str) -> impl FnOnce(rdkafka::error::KafkaError) -> Self {
        move |source| Self::Kafka { context, source }
    }
}
