//! order-service over gRPC, on a real Postgres.

mod bad_input;
mod faults;
mod idempotency;
mod orders;
mod process;
mod shop;
