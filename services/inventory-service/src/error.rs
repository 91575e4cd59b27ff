//! What the service can come to, and what that means for a batch of records.

use messaging::ApplyError;
use sea_orm::DbErr;

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
        let text = chain(&error);
        match error {
            Error::Database(source)
            | Error::Inbox(inbox::Error::Accept(source))
            | Error::Outbox(outbox::Error::Append(source))
            | Error::Connect(database::Error::Database(source)) => match database::failure(&source) {
                database::Failure::Conflict => Self::Conflict(text),
                database::Failure::Unavailable => Self::Unavailable(text),
                database::Failure::Data => Self::Data(text),
            },
            Error::Outbox(_) | Error::Kafka(_) | Error::Runtime(_) => Self::Unavailable(text),
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes: Vec<String> =
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    causes.join(": ")
}
