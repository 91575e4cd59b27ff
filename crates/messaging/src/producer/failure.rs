//! What an error of the client means for a batch (table of `docs/decisions/0003`).

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Why a record was not sent, by its own fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedReason {
    /// No broker will take it.
    #[error("record of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The largest that is sent.
        limit: usize,
    },
    /// The broker has no such topic, as last asked.
    #[error("unknown topic")]
    UnknownTopic,
    /// The client's queue has no room; nothing is wrong with the record.
    #[error("the producer's queue is full")]
    QueueFull,
}

/// Why a producer must be retired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProducerFailure {
    /// Not all acks came in time. The records may be written or not.
    #[error("not all records were acknowledged in time")]
    Deadline,
    /// A passing fault, or one that nobody knows; never the records' fault.
    #[error("transient: {0}")]
    Transient(String),
    /// The broker refused a request for a record in it that is too large or invalid.
    #[error("a record was refused: {0}")]
    BadRecord(String),
    /// A topic or partition went away while records were under way.
    #[error("topic: {0}")]
    Topic(String),
    /// This client may not write there: somebody must grant it.
    #[error("not authorized: {0}")]
    Unauthorized(String),
    /// Fatal to this producer, not to its records.
    #[error("fatal to the producer: {0}")]
    Fatal(String),
    /// A record landed in another partition than its key says: a topic's partition count has changed.
    #[error("a topic's partition count has changed")]
    PartitionsChanged,
    /// It was retired before.
    #[error("the producer was retired")]
    Retired,
}

pub(super) fn of_delivery(error: &KafkaError) -> ProducerFailure {
    let text = error.to_string();
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidRecord) => {
            ProducerFailure::BadRecord(text)
        }
        Some(
            RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::InvalidTopic,
        ) => ProducerFailure::Topic(text),
        Some(RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::ClusterAuthorizationFailed) => {
            ProducerFailure::Unauthorized(text)
        }
        Some(
            RDKafkaErrorCode::Fatal
            | RDKafkaErrorCode::GaplessGuarantee
            | RDKafkaErrorCode::OutOfOrderSequenceNumber
            | RDKafkaErrorCode::UnknownProducerId
            | RDKafkaErrorCode::Inconsistent,
        ) => ProducerFailure::Fatal(text),
        // The client has some two hundred codes; one that is not known to be the record's fault is nobody's.
        _ => ProducerFailure::Transient(text),
    }
}

pub(super) fn of_enqueue(error: &KafkaError, limit: usize) -> Result<RefusedReason, ProducerFailure> {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::QueueFull) => Ok(RefusedReason::QueueFull),
        Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
            Ok(RefusedReason::TooLarge { bytes: limit + 1, limit })
        }
        Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {
            Ok(RefusedReason::UnknownTopic)
        }
        _ => Err(of_delivery(error)),
    }
}
