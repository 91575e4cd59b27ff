//! Layered settings: defaults compiled into the binary, then a file, then the environment. A key that the
//! defaults do not know is refused, and everything that is wrong is said in one report.

mod check;

use std::path::{Path, PathBuf};

use config::{Config, Environment, File, FileFormat};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Environment variables are named `BREW__SECTION__KEY`.
pub const ENV_PREFIX: &str = "BREW";

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The compiled-in defaults or the file cannot be read as TOML.
    #[error("settings cannot be read: {0}")]
    Unreadable(#[from] config::ConfigError),
    /// The compiled-in defaults are no TOML; a fault of the program.
    #[error("built-in default settings cannot be read: {0}")]
    Defaults(#[from] toml::de::Error),
    /// The file named on the command line is not there.
    #[error("settings file {} is not there", .0.display())]
    NoFile(PathBuf),
    /// Unknown keys, or values of the wrong kind: all of them.
    #[error("{}", report(.0))]
    Invalid(Vec<String>),
    /// A value that the service cannot take, though it is of the right kind.
    #[error("settings: {0}")]
    Value(#[from] serde_json::Error),
}

fn report(problems: &[String]) -> String {
    format!("{} setting(s) cannot be used:\n  {}", problems.len(), problems.join("\n  "))
}

/// Loads settings from `defaults` (TOML that names *every* key), then `file`, then those variables of `env` that
/// start with `BREW__`. A table `_` in the defaults is the pattern for free-named tables beside it.
///
/// # Errors
/// See [`Error`]; the message names the keys, never a value, since a value may be a secret.
pub fn load<T: DeserializeOwned>(
    defaults: &str,
    file: Option<&Path>,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<T, Error> {
    let pattern: Value = toml::from_str(defaults)?;
    let variables = env.into_iter().filter(|(name, _)| name.starts_with("BREW__")).collect();
    let mut builder = Config::builder().add_source(File::from_str(defaults, FileFormat::Toml));
    if let Some(path) = file {
        if !path.is_file() {
            return Err(Error::NoFile(path.to_owned()));
        }
        builder = builder.add_source(File::from(path).format(FileFormat::Toml));
    }
    let environment =
        Environment::with_prefix(ENV_PREFIX).prefix_separator("__").separator("__").source(Some(variables));
    let mut merged: Value = builder.add_source(environment).build()?.try_deserialize()?;

    let problems = check::conform(&pattern, &mut merged);
    if !problems.is_empty() {
        return Err(Error::Invalid(problems));
    }
    Ok(serde_json::from_value(merged)?)
}

/// For `#[serde(deserialize_with)]`: an empty text means "not set".
///
/// # Errors
/// When the value is no text.
pub fn empty_is_none<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(value)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const DEFAULTS: &str = r#"
        name = "brew"
        [database]
        url = ""
        max_connections = 8
        [sources._]
        url = ""
        workers = 1
        [flags]
        verbose = false
        tags = ["a"]
    "#;

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn load_value(pairs: &[(&str, &str)]) -> Result<Value, Error> {
        load(DEFAULTS, None, env(pairs))
    }

    #[test]
    fn environment_overrides_and_takes_the_kind_of_the_default() {
        let loaded = load_value(&[
            ("BREW__DATABASE__MAX_CONNECTIONS", "3"),
            ("BREW__NAME", "42"),
            ("BREW__FLAGS__VERBOSE", "true"),
            ("BREW__FLAGS__TAGS", "x,y"),
            ("HOME", "/nowhere"),
        ])
        .unwrap();
        assert_eq!(loaded["database"]["max_connections"], 3);
        assert_eq!(loaded["name"], "42");
        assert_eq!(loaded["flags"]["verbose"], true);
        assert_eq!(loaded["flags"]["tags"], serde_json::json!(["x", "y"]));
    }

    #[test]
    fn all_misspelt_keys_are_in_one_report_with_a_guess() {
        let error = load_value(&[
            ("BREW__DATABSE__URL", "postgres://secret"),
            ("BREW__DATABASE__MAX_CONECTIONS", "3"),
            ("BREW__FLAGS__VERBOSE", "maybe"),
            ("BREW__SOURCES__ORDERS__ULR", "x"),
        ])
        .unwrap_err()
        .to_string();
        for part in [
            "`databse`",
            "did you mean `database`",
            "`database.max_conections`",
            "did you mean `database.max_connections`",
            "`flags.verbose`",
            "`sources.orders.ulr`",
        ] {
            assert!(error.contains(part), "{part} not in {error}");
        }
        assert!(!error.contains("secret"));
    }

    #[test]
    fn free_named_tables_take_their_defaults_from_the_pattern() {
        let loaded = load_value(&[("BREW__SOURCES__ORDERS__URL", "here")]).unwrap();
        let sources: BTreeMap<String, Value> = serde_json::from_value(loaded["sources"].clone()).unwrap();
        assert_eq!(sources.keys().collect::<Vec<_>>(), ["orders"]);
        assert_eq!(sources["orders"]["workers"], 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = load::<Value>(DEFAULTS, Some(Path::new("/no/such.toml")), []).unwrap_err();
        assert!(error.to_string().contains("/no/such.toml"));
    }
}
