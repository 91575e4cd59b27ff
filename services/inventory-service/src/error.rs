//! What the service can come to, and what that means for a batch of records.

use events::Sku;
use messaging::ApplyError;
use sea_orm::DbErr;
use tonic::Status;

use crate::domain::NotReserved;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error("database")]
    Database(#[from] DbErr),
    /// The inbox.
    #[error("inbox")]
    Inbox(#[from] inbox::Error),
    /// The outbox.
    #[error("outbox")]
    Outbox(#[from] outbox::Error),
    /// An event that cannot be.
    #[error(transparent)]
    NotReserved(#[from] NotReserved),
    /// There is no such thing on the shelf.
    #[error("sku: `{0}` is not stocked")]
    NoSku(Sku),
    /// The idempotency key belongs to something else; nothing was changed.
    #[error("idempotency_key: was used for something else")]
    KeyReused,
    /// The gRPC server.
    #[error("gRPC server")]
    Server(#[from] tonic::transport::Error),
    /// Reflection cannot read the service's own description.
    #[error("gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// A listener that cannot be bound.
    #[error("listen")]
    Listen(#[from] std::io::Error),
    /// The database's settings make no pool.
    #[error(transparent)]
    Connect(#[from] database::Error),
    /// Kafka.
    #[error(transparent)]
    Kafka(#[from] messaging::Error),
    /// A task of the service failed.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> Self {
        let text = telemetry::chain(&error);
        match error {
            Error::Database(source)
            | Error::Inbox(inbox::Error::Accept(source) | inbox::Error::Waits(source))
            | Error::Outbox(outbox::Error::Append(source))
            | Error::Connect(database::Error::Database(source)) => match database::failure(&source) {
                database::Failure::Conflict => Self::Conflict(text),
                database::Failure::Unavailable => Self::Unavailable(text),
                database::Failure::Data => Self::Data(text),
            },
            Error::NotReserved(_) => Self::Data(text),
            // What is too large now is too large later.
            Error::Outbox(outbox::Error::TooLarge { .. }) => Self::Data(text),
            Error::Outbox(_)
            | Error::Connect(database::Error::NoSchema { .. })
            | Error::Inbox(_)
            | Error::Kafka(_)
            | Error::Runtime(_)
            | Error::NoSku(_)
            | Error::KeyReused
            | Error::Server(_)
            | Error::Reflection(_)
            | Error::Listen(_) => Self::Unavailable(text),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match &error {
            Error::NoSku(_) => Self::not_found(error.to_string()),
            Error::KeyReused => Self::failed_precondition(error.to_string()),
            Error::Database(source) => match database::failure(source) {
                database::Failure::Conflict => Self::aborted("lost against another call; try again"),
                database::Failure::Unavailable => Self::unavailable("the database is away; try again"),
                database::Failure::Data => Self::internal("internal error"),
            },
            _ => Self::internal("internal error"),
        }
    }
}
