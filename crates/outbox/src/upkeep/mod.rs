//! Keeping the outbox's table in shape: a partition for each day, made ahead; rows out of the default partition; old
//! partitions dropped once everything in them was settled long enough ago.
//!
//! Whatever locks the table waits for its lock, and then works, only for a stated time; else it is left for the next
//! run, with the reason. Rows are never at risk: until a run succeeds they are in the default partition, or stay.

mod partitions;
mod prune;

use std::time::Duration;

use time::{Date, OffsetDateTime};
use tokio_postgres::{Client, Transaction, error::SqlState};

use crate::Error;

/// How the table is kept.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep {
    /// For so many days after today there are partitions.
    pub days_ahead: u16,
    /// A partition is dropped when all its rows were published or discarded longer ago than this; none: never.
    pub retention: Option<Duration>,
    /// A lock on the table is waited for so long; all others wait behind it.
    pub lock_timeout: Duration,
    /// And then a statement may take so long.
    pub statement_timeout: Duration,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Partitions made.
    pub made: Vec<String>,
    /// Rows moved out of the default partition.
    pub moved: u64,
    /// Partitions dropped, and how many rows each had.
    pub pruned: Vec<(String, i64)>,
    /// What could not be done now, and why: a table or a day, and the reason.
    pub left: Vec<(String, String)>,
}

/// One run. A second one at the same time does nothing.
///
/// # Errors
/// The database's; a lock that does not come in time is none. Safe to cancel: a step is done or not.
pub async fn keep(client: &mut Client, upkeep: Upkeep) -> Result<Kept, Error> {
    let mut kept = Kept::default();
    let lock = "select pg_try_advisory_lock(hashtextextended('outbox upkeep', 0))";
    if !client.query_one(lock, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(kept);
    }
    let done = run(client, upkeep, &mut kept).await;
    let unlock = client.execute("select pg_advisory_unlock(hashtextextended('outbox upkeep', 0))", &[]).await;
    done?;
    unlock?;
    Ok(kept)
}

async fn run(client: &mut Client, upkeep: Upkeep, kept: &mut Kept) -> Result<(), Error> {
    partitions::make(client, upkeep, kept).await?;
    if let Some(retention) = upkeep.retention {
        prune::prune(client, upkeep, retention, kept).await?;
    }
    Ok(())
}

/// A transaction that gives up rather than block others.
async fn bounded(client: &mut Client, upkeep: Upkeep) -> Result<Transaction<'_>, tokio_postgres::Error> {
    let tx = client.transaction().await?;
    tx.batch_execute(&format!(
        "set local lock_timeout = {}; set local statement_timeout = {}",
        upkeep.lock_timeout.as_millis(),
        upkeep.statement_timeout.as_millis()
    ))
    .await?;
    Ok(tx)
}

/// Done, or left for another time; or a failure that is neither.
fn or_left(
    done: Result<(), tokio_postgres::Error>,
    what: &str,
    kept: &mut Kept,
) -> Result<bool, tokio_postgres::Error> {
    let Err(error) = done else { return Ok(true) };
    let why = match error.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => "others hold the table",
        Some(&SqlState::QUERY_CANCELED) => "it takes too long",
        Some(&SqlState::T_R_DEADLOCK_DETECTED) => "others wait for each other",
        _ => return Err(error),
    };
    kept.left.push((what.to_owned(), why.to_owned()));
    Ok(false)
}

/// `outbox_20261202`.
fn name(day: Date) -> String {
    format!("outbox_{:04}{:02}{:02}", day.year(), u8::from(day.month()), day.day())
}

fn begin(day: Date) -> OffsetDateTime {
    day.midnight().assume_utc()
}
