//! For tests only: a database per test and topics per test, on the real Postgres and Kafka that `make test` starts;
//! relays in small; and waiting for a condition instead of for a time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod broker;
mod history;
mod postgres;
mod process;
mod proxy;
mod relays;
mod span_docs;
mod topics;
mod until;

pub use broker::{Broker, Second};
pub use history::{History, history};
pub use postgres::{TestDatabase, database};
pub use process::{Service, free_address, ready_while_the_database_is_there, run_to_end};
pub use proxy::{Proxy, Replies};
pub use relays::{drain, relay_options, relay_setup, start_relay};
pub use span_docs::span_in_docs;
pub use topics::{kafka, make_topic, progress_topic, read, topic, topic_on_two};
pub use until::until;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests by `make test`"))
}
