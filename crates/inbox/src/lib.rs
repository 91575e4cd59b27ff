//! The inbox: each event takes effect once per consumer, however often it is delivered. Knows no broker.

mod operate;
mod prune;
mod waits;

use std::collections::BTreeSet;

pub use database::Decider;
use database::Migration;
use events::{Envelope, Place};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, Statement};
use tracing::Instrument;
use uuid::Uuid;

pub use operate::{Action, LetterAt, decide, decided, waiting};
pub use prune::{Options, check, keep_pruned, prune};
pub use waits::{Head, note_dead_letter};

/// What went wrong with the inbox.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The insert failed; the caller's transaction is of no more use.
    #[error("accept into the inbox")]
    Accept(#[source] DbErr),
    /// What waits could not be noted or looked up.
    #[error("note dead letters")]
    Waits(#[source] DbErr),
    /// Old ids could not be deleted.
    #[error("prune the inbox")]
    Prune(#[source] DbErr),
    /// An operator's question or decision failed.
    #[error("dead letters")]
    Operate(#[from] tokio_postgres::Error),
    /// Ids would be forgotten while their events can still come again.
    #[error(
        "`inbox.retention_ms` is {retention_ms}; it must be more than `retention.ms` of topic `{topic}`, which is \
         {kept}, and `inbox.longest_replay_ms`, which is {longest_replay_ms}, together"
    )]
    Forgets {
        /// `inbox.retention_ms`.
        retention_ms: u64,
        /// Whose records can come again.
        topic: String,
        /// Its `retention.ms`.
        kept: String,
        /// `inbox.longest_replay_ms`.
        longest_replay_ms: u64,
    },
}

/// An event as it came.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Which event.
    pub envelope: &'a Envelope,
    /// Where its record first stood; none: it never waits behind a dead letter.
    pub first_place: Option<&'a Place>,
}

impl<'a> Arrival<'a> {
    /// An event whose record first stood at `first_place`; `waits`: behind dead letters of its aggregate.
    #[must_use]
    pub fn new(envelope: &'a Envelope, first_place: &'a Place, waits: bool) -> Self {
        Self { envelope, first_place: waits.then_some(first_place) }
    }
}

/// What becomes of an event that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is to take effect, in the same transaction.
    New,
    /// It took effect before.
    Known,
    /// It must not take effect yet.
    Waits(Head),
}

impl Accepted {
    /// Whether the event takes effect now; none if it waits.
    #[must_use]
    pub fn is_new(&self) -> Option<bool> {
        match self {
            Self::New => Some(true),
            Self::Known => Some(false),
            Self::Waits(_) => None,
        }
    }

    /// Why the event waits, if it does.
    #[must_use]
    pub fn waits(&self) -> Option<String> {
        let Self::Waits(head) = self else { return None };
        let outbox_id = head.outbox_id.map_or("unknown".to_owned(), |id| id.to_string());
        Some(format!("waits behind outbox-id {outbox_id}, {}", head.place))
    }
}

/// Every migration of the inbox.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    vec![
        Migration::new(
            "inbox_0001_create_processed_outbox_ids",
            include_str!("../migrations/0001_create_processed_outbox_ids.up.sql"),
            include_str!("../migrations/0001_create_processed_outbox_ids.down.sql"),
        ),
        Migration::new(
            "inbox_0002_index_processed_at",
            include_str!("../migrations/0002_index_processed_at.up.sql"),
            include_str!("../migrations/0002_index_processed_at.down.sql"),
        ),
        Migration::new(
            "inbox_0003_create_dead_letters",
            include_str!("../migrations/0003_create_dead_letters.up.sql"),
            include_str!("../migrations/0003_create_dead_letters.down.sql"),
        ),
    ]
}

/// Notes `batch` as processed by `consumer` and returns, position by position, what becomes of the event. Of copies
/// within the batch the first is new. Make the business change for the new ones in the same transaction. Those that
/// wait behind a dead letter of their aggregate are noted as waiting, and not as processed: make dead letters of them
/// before their offsets are committed.
///
/// Two consumers that meet on one event wait for each other: the second sees the first's outcome. Ids are inserted
/// sorted, so that two batches never wait for each other in a circle.
///
/// # Errors
/// The database's; the transaction can then only be rolled back.
pub async fn accept(
    tx: &DatabaseTransaction,
    consumer: &str,
    batch: &[Arrival<'_>],
) -> Result<Vec<Accepted>, Error> {
    let heads = waits::hold_back(tx, consumer, batch).await.map_err(Error::Waits)?;
    let ready = batch.iter().zip(&heads).filter(|(_, head)| head.is_none());
    let ready: Vec<&Envelope> = ready.map(|(one, _)| one.envelope).collect();
    let mut new = insert(tx, consumer, &ready).await.map_err(Error::Accept)?;
    let become_of = |(one, head): (&Arrival<'_>, Option<Head>)| match head {
        Some(head) => Accepted::Waits(head),
        None => {
            let (id, source, event) = key(one.envelope);
            if new.remove(&(id, source.to_owned(), event)) { Accepted::New } else { Accepted::Known }
        }
    };
    Ok(batch.iter().zip(heads).map(become_of).collect())
}

/// Those of `batch` that were not there.
async fn insert(
    tx: &DatabaseTransaction,
    consumer: &str,
    batch: &[&Envelope],
) -> Result<BTreeSet<(i64, String, Uuid)>, DbErr> {
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
    let insert = telemetry::spans::statement("INSERT", "processed_outbox_ids");
    for row in tx.query_all_raw(statement).instrument(insert).await? {
        new.insert((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?));
    }
    Ok(new)
}

type Key<'a> = (i64, &'a str, Uuid);

fn key(envelope: &Envelope) -> Key<'_> {
    (envelope.outbox_id.0, &envelope.source, envelope.event_id.0)
}
