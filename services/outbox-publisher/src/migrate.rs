//! Makes the outbox's tables, for services that do not do so themselves.

use database::Options;

use crate::{Error, publish::check, settings::Settings};

/// Brings the outbox in the database of every source to this version's schema; `name` is stored in those that are new.
///
/// # Errors
/// Sources without a URL; the database's, after which nothing has changed in it; a name that is none.
pub async fn migrate(settings: Settings, name: &str) -> Result<(), Error> {
    check(&settings)?;
    for source in settings.sources.values() {
        let options = Options {
            url: source.url.clone(),
            max_connections: 1,
            acquire_timeout_ms: settings.relay.connect_timeout_ms,
        };
        let db = database::connect(&options).await?;
        database::migrate(&db, outbox::migrations(name)).await?;
    }
    Ok(())
}
