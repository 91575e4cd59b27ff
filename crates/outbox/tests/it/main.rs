//! The outbox against a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod append;
mod blocked;
mod claim;
mod plan;
mod schema;
mod upkeep;
