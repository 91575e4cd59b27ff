//! payment-gateway: a sandbox of an outside payment provider, with books of its own and misbehaviour on command.
//! For development and tests.

pub mod settings;

mod books;
mod http;
mod mischief;
mod serve;

pub use serve::{Error, migrations, serve};
