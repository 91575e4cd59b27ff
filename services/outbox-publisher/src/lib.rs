//! outbox-publisher: the relay as a process, for one outbox or several. A thin binary over `relay`.

pub mod settings;

mod migrate;
mod publish;

pub use migrate::{await_schema, migrate};
pub use publish::{Error, Options, publish};
