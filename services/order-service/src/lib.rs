//! order-service: accepts orders over gRPC, and writes each order and its event in one transaction.

pub mod settings;

pub mod domain;

pub mod app;
mod store;

mod error;
mod grpc;
mod serve;

pub use error::Error;
pub use serve::serve;
pub use store::migrations;
