//! What the service can come to, and what that means for a batch of records and for a caller.

use events::OrderId;
use messaging::ApplyError;
use sea_orm::DbErr;
use tonic::Status;

use crate::domain::Impossible;

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
    /// An event or an answer that cannot be.
    #[error(transparent)]
    Impossible(#[from] Impossible),
    /// There is no such payment.
    #[error("order_id: there is no payment of `{0}`")]
    NoPayment(OrderId),
    /// The database's settings make no pool.
    #[error(transparent)]
    Connect(#[from] database::Error),
    /// The provider's settings make no client.
    #[error("gateway client")]
    Gateway(#[from] reqwest::Error),
    /// Kafka.
    #[error(transparent)]
    Kafka(#[from] messaging::Error),
    /// A task of the service failed.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    /// The gRPC server.
    #[error("gRPC server")]
    Server(#[from] tonic::transport::Error),
    /// Reflection cannot read the service's own description.
    #[error("gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// A listener that cannot be bound.
    #[error("listen")]
    Listen(#[from] std::io::Error),
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
            Error::Impossible(_) => Self::Data(text),
            // What is too large now is too large later.
            Error::Outbox(outbox::Error::TooLarge { .. }) => Self::Data(text),
            Error::Outbox(_)
            | Error::Inbox(_)
            | Error::NoPayment(_)
            | Error::Connect(_)
            | Error::Gateway(_)
            | Error::Kafka(_)
            | Error::Runtime(_)
            | Error::Server(_)
            | Error::Reflection(_)
            | Error::Listen(_) => Self::Unavailable(text),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match &error {
            Error::NoPayment(_) => Self::not_found(error.to_string()),
            Error::Database(_) => Self::unavailable("the database is away; try again"),
            _ => Self::internal("internal error"),
        }
    }
}
