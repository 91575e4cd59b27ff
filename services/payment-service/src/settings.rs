//! The service's settings.

use std::{net::SocketAddr, path::Path};

use messaging::{ConsumerOptions, KafkaOptions};
use runtime::AdminOptions;
use serde::Deserialize;

/// Everything that can be set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long batches and calls have at shutdown.
    pub drain_grace_ms: u64,
    /// The admin port.
    pub admin: AdminOptions,
    /// The gRPC port.
    pub grpc: Grpc,
    /// The service's own database.
    pub database: database::Options,
    /// Where the events come from.
    pub kafka: KafkaOptions,
    /// How they are read.
    pub consumer: ConsumerOptions,
    /// How long it is remembered which were applied.
    pub inbox: inbox::Options,
    /// The provider.
    pub gateway: Gateway,
    /// Topic names.
    pub topics: Topics,
    /// Wake-ups for publishers.
    pub outbox: outbox::WakeOptions,
}

/// The gRPC port.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grpc {
    /// Where it listens.
    pub address: SocketAddr,
    /// A call that takes longer is ended.
    pub timeout_ms: u64,
}

/// The provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Its API.
    pub url: String,
    /// Calls at once.
    pub workers: usize,
    /// For one call.
    pub timeout_ms: u64,
    /// First wait between two tries.
    pub retry_min_ms: u64,
    /// Longest wait between two tries.
    pub retry_max_ms: u64,
    /// How long the provider remembers a key.
    pub key_retention_ms: u64,
    /// How many calls in a row without an answer open the circuit.
    pub circuit_failures: u32,
    /// For how long.
    pub circuit_open_ms: u64,
    /// How often due calls are looked for.
    pub poll_ms: u64,
}

/// Topic names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topics {
    /// Where events of payments go.
    pub payments: String,
}

/// Loads the settings from the defaults, `file` and the environment.
///
/// # Errors
/// All misspelt keys and misfit values at once.
pub fn load(file: Option<&Path>) -> Result<Settings, settings::Error> {
    settings::load(include_str!("../config/default.toml"), file, std::env::vars())
}
