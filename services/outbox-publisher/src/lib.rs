//! outbox-publisher: the relay as a process, for one outbox or several. A thin binary over `relay`.

pub mod settings;

mod publish;

pub use publish::{Error, Options, publish};
