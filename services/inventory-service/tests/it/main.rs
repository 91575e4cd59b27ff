//! inventory-service on a real Postgres and a real Kafka: exactly one effect, whatever is delivered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod delivery;
mod identity;
mod locks;
mod poison;
mod process;
mod redrive;
mod retention;
mod shelf;
mod stock;
