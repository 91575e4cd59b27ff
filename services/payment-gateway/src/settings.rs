//! The gateway's settings.

use std::{net::SocketAddr, path::Path};

use serde::Deserialize;

/// Everything that can be set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long calls have at shutdown.
    pub drain_grace_ms: u64,
    /// The admin port.
    pub admin: Port,
    /// The provider's API.
    pub http: Port,
    /// The provider's own database.
    pub database: database::Options,
    /// What goes wrong.
    pub misbehave: Misbehave,
}

/// A port.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Where it listens.
    pub address: SocketAddr,
}

/// What goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misbehave {
    /// So many of 100 calls.
    pub percent: u64,
    /// How long a call that hangs hangs.
    pub hang_ms: u64,
    /// How long a slow call takes.
    pub slow_ms: u64,
}

/// Loads the settings from the defaults, `file` and the environment.
///
/// # Errors
/// All misspelt keys and misfit values at once.
pub fn load(file: Option<&Path>) -> Result<Settings, settings::Error> {
    settings::load(include_str!("../config/default.toml"), file, std::env::vars())
}
