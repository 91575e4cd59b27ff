//! The outbox: events written in the transaction that makes them true, and handed to a relay shard by shard. Knows
//! no broker.
//!
//! A service calls [`append`] inside its own transaction. A relay opens a [`Session`], asks which shards have
//! [pending rows](Session::pending_shards), [claims](Session::claim) some and [settles](Claim::settle) what was
//! acknowledged. [`migrations`] makes the tables.

mod append;
mod bounds;
mod claim;
mod explain;
mod lane;
mod migrations;
mod operate;
mod session;
mod settle;
mod statements;
mod status;
mod upkeep;
mod wake;

pub use append::{NewEvent, append, append_all};
pub use claim::{Blocked, Claim, ClaimLimits, PendingRow};
pub use database::Decider;
pub use explain::{Explanation, explain};
pub use lane::{LANES, Sent, lane_of};
pub use migrations::migrations;
pub use operate::{Action, Parked, decide, parked, pause};
pub use session::{Session, SessionOptions, connect};
pub use settle::Settlement;
pub use status::{Gauges, Status, gauges, status};
pub use upkeep::{Kept, Upkeep, keep};
pub use wake::{Wake, WakeOptions, listen, notify};

/// How many shards there are. Frozen: a change would put one aggregate in two shards at once.
pub const SHARDS: i16 = 64;

/// Largest payload that [`append`] takes, as JSON, in bytes: below every broker's default limit of 1 MiB, with room for
/// headers.
pub const MAX_PAYLOAD_BYTES: usize = 950_000;

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
    /// Nothing is to be decided about this row: it can be sent, is sent, or is not there.
    #[error("row {0} is not parked and does not wait (`brew outbox parked` lists those that do)")]
    NotParked(i64),
    /// The event is too large for the outbox.
    #[error("payload of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size as JSON.
        bytes: usize,
        /// The largest that is taken.
        limit: usize,
    },
    /// The event cannot be written as JSON.
    #[error("event as JSON")]
    Json(#[from] serde_json::Error),
}
