//! The outbox: events written in the transaction that makes them true, and handed to a relay shard by shard. Knows
//! no broker.
//!
//! A service calls [`append`] inside its own transaction. A relay opens a [`Session`], asks which shards have
//! [pending rows](Session::pending_shards), [claims](Session::claim) some and [settles](Claim::settle) what was
//! acknowledged. [`migrations`] makes the tables.

mod append;
mod claim;
mod migrations;
mod session;
mod status;

pub use append::{NewEvent, append, append_all};
pub use claim::{Claim, ClaimLimits, PendingRow};
pub use migrations::migrations;
pub use session::{Session, SessionOptions};
pub use status::{Status, status};

/// How many shards there are. Frozen: a change would put one aggregate in two shards at once.
pub const SHARDS: i16 = 64;

/// What went wrong with the outbox.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The insert failed; the caller's transaction is of no more use.
    #[error("append to the outbox")]
    Append(#[from] sea_orm::DbErr),
    /// The relay's session, or a statement in it. The claim is lost and the session is of no more use.
    #[error("outbox session")]
    Session(#[from] tokio_postgres::Error),
    /// TLS cannot be set up.
    #[error("outbox session: TLS")]
    Tls(#[from] native_tls::Error),
    /// The event cannot be written as JSON.
    #[error("event as JSON")]
    Json(#[from] serde_json::Error),
}
