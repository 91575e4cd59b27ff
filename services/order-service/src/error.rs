//! What a use case can come to, and the one place where that becomes a gRPC status.

use messaging::ApplyError;
use sea_orm::DbErr;
use tonic::Status;

use crate::domain::{Invalid, Refused};

/// Why a use case did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong; nothing was stored.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The idempotency key belongs to an order with another body; nothing was changed.
    #[error("idempotency_key: was used for another order; take a new key for a new order")]
    KeyReused,
    /// The order cannot go that way; nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There is no such order.
    #[error("order_id: there is no order `{0}`")]
    NoOrder(String),
    /// The database.
    #[error("database")]
    Database(#[from] DbErr),
    /// The inbox.
    #[error("inbox")]
    Inbox(#[from] inbox::Error),
    /// Kafka.
    #[error(transparent)]
    Kafka(#[from] messaging::Error),
    /// The outbox.
    #[error("outbox")]
    Outbox(#[from] outbox::Error),
    /// The settings of the relay in this process do not fit together.
    #[error(transparent)]
    Relay(#[from] relay::Error),
    /// The database's settings make no pool.
    #[error(transparent)]
    Connect(#[from] database::Error),
    /// A task of the service failed.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    /// A listener that cannot be bound.
    #[error("listen")]
    Listen(#[from] std::io::Error),
    /// The gRPC server.
    #[error("gRPC server")]
    Server(#[from] tonic::transport::Error),
    /// Reflection cannot read the service's own description.
    #[error("gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Invalid(_) => Self::invalid_argument(text),
            Error::KeyReused | Error::Refused(_) => Self::failed_precondition(text),
            Error::NoOrder(_) => Self::not_found(text),
            Error::Database(source) | Error::Outbox(outbox::Error::Append(source)) => of_database(&source),
            Error::Outbox(_)
            | Error::Inbox(_)
            | Error::Kafka(_)
            | Error::Relay(_)
            | Error::Connect(_)
            | Error::Runtime(_)
            | Error::Listen(_)
            | Error::Server(_)
            | Error::Reflection(_) => {
                tracing::error!(error = text, "internal error");
                Self::internal("internal error")
            }
        }
    }
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> Self {
        let text = telemetry::chain(&error);
        match error {
            Error::Database(source)
            | Error::Inbox(inbox::Error::Accept(source) | inbox::Error::Waits(source))
            | Error::Outbox(outbox::Error::Append(source)) => match database::failure(&source) {
                database::Failure::Conflict => Self::Conflict(text),
                database::Failure::Unavailable => Self::Unavailable(text),
                database::Failure::Data => Self::Data(text),
            },
            // An answer that cannot be: about no order of ours, or over another amount.
            Error::Refused(_) | Error::NoOrder(_) => Self::Data(text),
            // What is too large now is too large later.
            Error::Outbox(outbox::Error::TooLarge { .. }) => Self::Data(text),
            Error::Outbox(_)
            | Error::Inbox(_)
            | Error::Invalid(_)
            | Error::KeyReused
            | Error::Kafka(_)
            | Error::Relay(_)
            | Error::Connect(_)
            | Error::Runtime(_)
            | Error::Listen(_)
            | Error::Server(_)
            | Error::Reflection(_) => Self::Unavailable(text),
        }
    }
}

/// The caller learns whether to try again, and nothing about the database.
fn of_database(error: &DbErr) -> Status {
    match database::failure(error) {
        database::Failure::Conflict => Status::aborted("lost against another call; try again"),
        database::Failure::Unavailable => {
            tracing::warn!(%error, "database unavailable");
            Status::unavailable(
                "the database is away or busy; nothing is known to be stored, try again with the same key",
            )
        }
        database::Failure::Data => {
            tracing::error!(%error, "the database refused what the service took for valid");
            Status::internal("internal error")
        }
    }
}
