//! order-service over gRPC, on a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod bad_input;
mod faults;
mod idempotency;
mod orders;
mod process;
mod saga;
mod shop;
