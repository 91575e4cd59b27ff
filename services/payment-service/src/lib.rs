//! payment-service: holds, takes and gives back the money of orders, through a provider that is outside of every
//! transaction.

pub mod settings;

pub mod domain;

pub mod app;
mod store;

mod consumer;
mod error;
mod gateway;
mod grpc;
mod serve;
mod worker;

pub use error::Error;
pub use serve::serve;
pub use store::migrations;
