//! order-service: accepts orders over gRPC, writes each order and its event in one transaction, and joins the
//! answers of stock and payment.

pub mod settings;

pub mod domain;

pub mod app;
mod store;

mod consumer;
mod error;
mod gauges;
mod grpc;
mod serve;
mod sweeper;

pub use error::Error;
pub use serve::serve;
pub use store::migrations;
