//! inventory-service: sets stock aside for orders, commits or releases it, and tells what came of it, once each.

pub mod settings;

pub mod domain;

pub mod app;
mod store;

mod consumer;
mod error;
mod grpc;
mod serve;

pub use error::Error;
pub use serve::{Options, serve};
pub use store::migrations;
