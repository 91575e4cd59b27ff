//! The service's settings.

use std::{net::SocketAddr, path::Path};

use messaging::{ConsumerOptions, KafkaOptions};
use runtime::AdminOptions;
use serde::Deserialize;

/// Everything that can be set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long calls have at shutdown.
    pub drain_grace_ms: u64,
    /// The admin port.
    pub admin: AdminOptions,
    /// The gRPC port.
    pub grpc: Grpc,
    /// The service's own database.
    pub database: database::Options,
    /// Where the answers come from.
    pub kafka: KafkaOptions,
    /// How they are read.
    pub consumer: ConsumerOptions,
    /// How long it is remembered which were applied.
    pub inbox: inbox::Options,
    /// Orders in time.
    pub orders: Orders,
    /// Topic names.
    pub topics: Topics,
    /// Wake-ups for publishers.
    pub outbox: outbox::WakeOptions,
    /// The relay in this process.
    pub relay: RelaySettings,
}

/// The relay in this process.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySettings {
    /// Whether this service publishes its own outbox.
    pub in_process: bool,
    /// How many workers it has.
    pub workers: usize,
    /// How it works.
    pub options: relay::Options,
}

/// The gRPC port.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grpc {
    /// Where it listens.
    pub address: SocketAddr,
    /// A call that takes longer is ended.
    pub timeout_ms: u64,
    /// More calls at once are turned away (`RESOURCE_EXHAUSTED`); open watches do not count.
    pub max_calls: usize,
    /// How often `WatchOrder` looks for a change.
    pub watch_interval_ms: u64,
}

/// Orders in time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    /// Whether answers are consumed and overdue orders cancelled.
    pub background: bool,
    /// How long stock and payment may take to answer.
    pub answer_timeout_ms: u64,
    /// How often overdue orders are looked for.
    pub sweep_interval_ms: u64,
}

/// Topic names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topics {
    /// Where events of orders go.
    pub orders: String,
}

/// Loads the settings from the defaults, `file` and the environment.
///
/// # Errors
/// All misspelt keys and misfit values at once.
pub fn load(file: Option<&Path>) -> Result<Settings, settings::Error> {
    settings::load(include_str!("../config/default.toml"), file, std::env::vars())
}
