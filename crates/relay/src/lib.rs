//! The relay: moves outbox rows to Kafka, at least once and in order per aggregate, with any number of replicas.
//! The only library room where outbox and messaging meet.
//!
//! [`run`] is the polling driver; [`Worker::drain_once`] is the core that it turns.

mod aside;
mod ears;
mod gauges;
mod lane;
mod options;
mod polling;
mod records;
mod tell;
mod upkeep;
mod worker;

pub use outbox::Wake;

pub use options::{Delivery, Options, Source, Target};
pub use polling::{Mode, Report, Setup, run};
pub use upkeep::{UpkeepOptions, upkeep};
pub use worker::{Observer, Published, Turn, TurnError, Worker};

/// What went wrong with the relay as a whole. What goes wrong in one turn is a [`TurnError`], and tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings that do not fit together.
    #[error("relay settings do not fit together: {}", .0.join("; "))]
    Options(Vec<String>),
    /// A worker panicked: a fault of the program.
    #[error("a relay worker panicked")]
    Panicked(#[from] tokio::task::JoinError),
}
