//! inventory-service: sets stock aside for orders, once each, and tells what came of it.

pub mod settings;

pub mod domain;

pub mod app;
mod store;

mod consumer;
mod error;
mod serve;

pub use consumer::{Delivery, decode};
pub use error::Error;
pub use serve::{Options, Tally, serve};
pub use store::migrations;
