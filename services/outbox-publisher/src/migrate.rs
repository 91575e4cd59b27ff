//! Makes the outbox's tables, for services that do not do so themselves, or waits for those that do.

use database::Options;

use crate::{
    Error,
    publish::check,
    settings::{Settings, SourceSettings},
};

/// Brings the outbox in the database of every source to this version's schema; `name` is stored in those that are new.
///
/// # Errors
/// Sources without a URL; the database's, after which nothing has changed in it; a name that is none.
pub async fn migrate(settings: Settings, name: &str) -> Result<(), Error> {
    check(&settings)?;
    for source in settings.sources.values() {
        database::migrate_at(&options(&settings, source), outbox::migrations(name)).await?;
    }
    Ok(())
}

/// Waits until the outbox in the database of every source has this version's schema.
///
/// # Errors
/// Sources without a URL; one that has waited for too long.
pub async fn await_schema(settings: Settings) -> Result<(), Error> {
    check(&settings)?;
    for source in settings.sources.values() {
        // The names of migrations are the same for every outbox.
        database::await_schema(&options(&settings, source), &outbox::migrations("any")).await?;
    }
    Ok(())
}

fn options(settings: &Settings, source: &SourceSettings) -> Options {
    Options {
        url: source.url.clone(),
        max_connections: 1,
        acquire_timeout_ms: settings.relay.connect_timeout_ms,
    }
}
