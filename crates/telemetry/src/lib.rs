//! Logs and traces: one start for every service, and trace context in and out of a string map.

pub mod context;
mod init;

pub use init::{Error, Guard, init};
