//! The relay against a real Postgres and a real Kafka: nothing lost, nothing overtaken.

mod faults;
mod order;
mod replicas;
mod rows;
