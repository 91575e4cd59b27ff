//! Logs, traces and metrics: one start for every service, the names of all that is told, and trace context in and out
//! of a string map.

pub mod catalogue;
pub mod context;
mod init;
pub mod metrics;
pub mod rpc;
pub mod spans;

pub use init::{Error, Guard, init, init_traces, init_traces_to};

/// An error with everything that caused it, in one line.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
