//! The publisher's settings.

use std::{collections::BTreeMap, path::Path};

use messaging::KafkaOptions;
use relay::Delivery;
use runtime::AdminOptions;
use secrecy::SecretString;
use serde::Deserialize;

/// Everything that can be set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long the process has to drain.
    pub drain_grace_ms: u64,
    /// The admin port.
    pub admin: AdminOptions,
    /// Where the records go.
    pub kafka: KafkaOptions,
    /// Where the rows come from, by name.
    pub sources: BTreeMap<String, SourceSettings>,
    /// How the relay works.
    pub relay: relay::Options,
    /// How the outboxes' tables are kept.
    pub upkeep: relay::UpkeepOptions,
}

/// One outbox.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// Of its database.
    pub url: SecretString,
    /// Whether to listen for wake-ups.
    pub listen: bool,
    /// Of the same database, past a pooler; empty: `url`.
    pub direct_url: SecretString,
    /// Whether statements are prepared.
    pub prepared_statements: bool,
    /// How many workers it gets.
    pub workers: usize,
    /// What a reader of the topics meets.
    pub delivery: Delivery,
}

/// Loads the settings from the defaults, `file` and the environment.
///
/// # Errors
/// All misspelt keys and misfit values at once.
pub fn load(file: Option<&Path>) -> Result<Settings, settings::Error> {
    settings::load(include_str!("../config/default.toml"), file, std::env::vars())
}
