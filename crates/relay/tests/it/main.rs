//! The relay against a real Postgres and a real Kafka: nothing lost, nothing overtaken.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod conformance;
mod embedded;
mod faults;
mod rows;
mod wake;
