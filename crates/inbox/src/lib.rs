//! The inbox: each event takes effect once per consumer, however often it is delivered. Knows no broker.

use std::collections::BTreeSet;

use database::Migration;
use events::Envelope;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, Statement};
use uuid::Uuid;

/// What went wrong with the inbox.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The insert failed; the caller's transaction is of no more use.
    #[error("accept into the inbox")]
    Accept(#[from] DbErr),
}

/// Every migration of the inbox.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    vec![Migration::new(
        "inbox_0001_create_processed_outbox_ids",
        include_str!("../migrations/0001_create_processed_outbox_ids.up.sql"),
        include_str!("../migrations/0001_create_processed_outbox_ids.down.sql"),
    )]
}

/// Notes `batch` as processed by `consumer` and returns, position by position, whether the event is new. Of copies
/// within the batch the first is new. Make the business change for the new ones in the same transaction.
///
/// Two consumers that meet on one event wait for each other: the second sees the first's outcome. Ids are inserted
/// sorted, so that two batches never wait for each other in a circle.
///
/// # Errors
/// The database's; the transaction can then only be rolled back.
pub async fn accept(
    tx: &DatabaseTransaction,
    consumer: &str,
    batch: &[&Envelope],
) -> Result<Vec<bool>, Error> {
    let mut keys: Vec<Key> = batch.iter().map(|envelope| key(envelope)).collect();
    keys.sort_unstable();
    keys.dedup();
    let ids: Vec<i64> = keys.iter().map(|key| key.0).collect();
    let sources: Vec<String> = keys.iter().map(|key| key.1.to_owned()).collect();
    let events: Vec<Uuid> = keys.iter().map(|key| key.2).collect();
    let values: [sea_orm::Value; 4] = [ids.into(), sources.into(), events.into(), consumer.into()];
    let statement =
        Statement::from_sql_and_values(DbBackend::Postgres, include_str!("../sql/accept.sql"), values);

    let mut new: BTreeSet<(i64, String, Uuid)> = BTreeSet::new();
    for row in tx.query_all_raw(statement).await? {
        new.insert((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?));
    }
    Ok(batch
        .iter()
        .map(|envelope| {
            let (id, source, event) = key(envelope);
            new.remove(&(id, source.to_owned(), event))
        })
        .collect())
}

type Key<'a> = (i64, &'a str, Uuid);

fn key(envelope: &Envelope) -> Key<'_> {
    (envelope.outbox_id.0, &envelope.source, envelope.event_id.0)
}
