//! A claim: some shards locked, their first pending rows read, until what was acknowledged is marked.
//!
//! Locking and reading are two statements at READ COMMITTED. One statement would read with a snapshot that was
//! taken before the lock, and so show rows that another publisher has marked in between.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use time::OffsetDateTime;
use tokio_postgres::{IsolationLevel, Row, Transaction};
use uuid::Uuid;

use crate::{Error, Session, session::Statements};

/// How much one claim takes.
#[derive(Debug, Clone, Copy)]
pub struct ClaimLimits {
    /// At most this many shards.
    pub max_shards: i64,
    /// At most this many rows over all shards.
    pub max_rows: i64,
}

/// Locked shards and their first pending rows. Dropped without [`settle`](Self::settle), it is rolled back: nothing
/// is marked and the shards are free again.
pub struct Claim<'s> {
    tx: Transaction<'s>,
    statements: &'s Statements,
    rows: Vec<Row>,
}

/// One row that waits to be published, borrowed from its claim.
#[derive(Debug, Clone)]
pub struct PendingRow<'c> {
    /// The row's id.
    pub id: i64,
    /// When its transaction began.
    pub created_at: OffsetDateTime,
    /// Record key.
    pub aggregate_id: &'c str,
    /// Where it goes.
    pub topic: &'c str,
    /// JSON, as Postgres writes it.
    pub payload: &'c str,
    /// The event's UUID.
    pub event_id: Uuid,
    /// The row's type, else the payload's, else `unknown`.
    pub event_type: &'c str,
    /// Which outbox.
    pub source: &'c str,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
}

impl Session {
    /// Locks up to `limits.max_shards` of `candidates`, beginning with shard `start` and going round, skipping
    /// those that another publisher holds; then reads their first pending rows, per shard in id order.
    ///
    /// # Errors
    /// The claim is lost and the session of no more use.
    pub async fn claim(
        &mut self,
        candidates: &[i16],
        start: i16,
        limits: ClaimLimits,
    ) -> Result<Claim<'_>, Error> {
        let Self { client, set_local, statements } = self;
        let tx = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
        tx.batch_execute(set_local).await?;
        let locked = tx.query(&statements.claim_shards, &[&candidates, &start, &limits.max_shards]).await?;
        let shards: Vec<i16> = locked.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let rows = fetch(&tx, statements, &shards, limits.max_rows).await?;
        Ok(Claim { tx, statements, rows })
    }
}

/// An equal share of each shard first; if that leaves room although a shard has more, whatever there is.
async fn fetch(
    tx: &Transaction<'_>,
    statements: &Statements,
    shards: &[i16],
    max_rows: i64,
) -> Result<Vec<Row>, Error> {
    if shards.is_empty() {
        return Ok(Vec::new());
    }
    let share = max_rows / i64::try_from(shards.len()).unwrap_or(1) + 1;
    let rows = tx.query(&statements.fetch_pending, &[&shards, &share, &max_rows]).await?;
    let mut counts: BTreeMap<i16, i64> = BTreeMap::new();
    for row in &rows {
        *counts.entry(row.try_get(9)?).or_default() += 1;
    }
    let full = counts.values().sum::<i64>() >= max_rows;
    if full || counts.values().all(|count| *count < share) {
        return Ok(rows);
    }
    Ok(tx.query(&statements.fetch_pending, &[&shards, &max_rows, &max_rows]).await?)
}

impl Claim<'_> {
    /// The rows, per shard in id order.
    ///
    /// # Errors
    /// Only if the table is not the one of this crate's migrations.
    pub fn rows(&self) -> Result<Vec<PendingRow<'_>>, Error> {
        self.rows.iter().map(pending_row).collect()
    }

    /// The shard of the last row. Whoever begins the next claim behind it serves every shard in turn, even when
    /// a row that fails again and again is all that a claim can take.
    ///
    /// # Errors
    /// Only if the table is not the one of this crate's migrations.
    pub fn last_shard(&self) -> Result<Option<i16>, Error> {
        Ok(self.rows.last().map(|row| row.try_get(9)).transpose()?)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none: another publisher was faster.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Marks as published those rows whose positions are in `acknowledged`, commits, and frees the shards. Returns
    /// how many rows were marked, which is fewer than asked for only if somebody else had marked one.
    ///
    /// # Errors
    /// The rows may be marked or not: the commit's outcome is unknown. Not cancellation safe in the same sense.
    pub async fn settle(self, acknowledged: &[usize]) -> Result<u64, Error> {
        let mut ids: Vec<i64> = Vec::with_capacity(acknowledged.len());
        let mut span: Option<(OffsetDateTime, OffsetDateTime)> = None;
        for row in acknowledged.iter().filter_map(|position| self.rows.get(*position)) {
            ids.push(row.try_get(0)?);
            let created: OffsetDateTime = row.try_get(1)?;
            span = Some(
                span.map_or((created, created), |(first, last)| (first.min(created), last.max(created))),
            );
        }
        let marked = match span {
            Some((first, last)) => {
                self.tx.execute(&self.statements.mark_published, &[&ids, &first, &last]).await?
            }
            None => 0,
        };
        self.tx.commit().await?;
        Ok(marked)
    }
}

fn pending_row(row: &Row) -> Result<PendingRow<'_>, Error> {
    Ok(PendingRow {
        id: row.try_get(0)?,
        created_at: row.try_get(1)?,
        aggregate_id: row.try_get(2)?,
        topic: row.try_get(3)?,
        payload: row.try_get(4)?,
        event_id: row.try_get(5)?,
        event_type: row.try_get(6)?,
        source: row.try_get(7)?,
        headers: headers(row.try_get(8)?),
    })
}

/// Any writer can put anything into the column that the table lets pass, so nothing here may fail: a row that
/// cannot be read would hold up its neighbours. What is no text becomes its JSON.
fn headers(column: Option<&str>) -> BTreeMap<String, String> {
    let parsed: BTreeMap<String, Json> =
        column.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    parsed
        .into_iter()
        .map(|(name, value)| match value {
            Json::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect()
}
