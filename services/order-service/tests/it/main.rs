//! order-service over gRPC, on a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers;
mod bad_input;
mod collector;
mod faults;
mod idempotency;
mod in_process;
mod orders;
mod permutations;
mod process;
mod saga;
mod shop;
