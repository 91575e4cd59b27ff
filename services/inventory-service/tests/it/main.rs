//! inventory-service on a real Postgres and a real Kafka: exactly one effect, whatever is delivered.

mod delivery;
mod identity;
mod poison;
mod process;
mod shelf;
mod stock;
