//! The outbox against a real Postgres.

mod append;
mod claim;
mod plan;
mod schema;
