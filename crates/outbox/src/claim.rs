//! A claim: some shards locked, their first pending rows read, until what was acknowledged is marked.
//!
//! Locking and reading are two statements at READ COMMITTED. One statement would read with a snapshot that was
//! taken before the lock, and so show rows that another publisher has marked in between.

use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    time::{Duration, Instant},
};

use futures::future::{try_join, try_join3};
use serde_json::Value as Json;
use time::OffsetDateTime;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{Error, Session};

/// How much one claim takes.
#[derive(Debug, Clone, Copy)]
pub struct ClaimLimits {
    /// At most this many shards.
    pub max_shards: i64,
    /// At most this many rows over all shards; beside them, rows that are tried again.
    pub max_rows: i64,
}

/// Locked shards and their first pending rows. Dropped without [`settle`](Self::settle), nothing is marked; the
/// shards are free again when the session claims again or ends.
pub struct Claim<'s> {
    pub(crate) session: &'s mut Session,
    /// To be sent, per shard in id order.
    pub(crate) rows: Vec<Row>,
    /// Rows that came behind one that cannot be sent: id and created_at.
    pub(crate) behind: Vec<(i64, OffsetDateTime)>,
    /// The blocks whose rows are tried again, by the row's id.
    pub(crate) retried: HashMap<i64, Blocked>,
    /// Aggregates that wait for a row that is there no more.
    pub(crate) stale: Vec<String>,
}

/// That a row could not be sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// How often it was tried.
    pub attempts: i32,
    /// Since the first try.
    pub age: Duration,
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
    /// Set when this is another try.
    pub blocked: Option<Blocked>,
}

impl Session {
    /// Locks up to `limits.max_shards` of `candidates`, beginning with shard `start` and going round, skipping
    /// those that another publisher holds; then reads their first pending rows, per shard in id order, and before
    /// them the rows that are to be tried again. Rows behind one that cannot be sent are left out.
    ///
    /// # Errors
    /// The claim is lost and the session of no more use.
    pub async fn claim(
        &mut self,
        candidates: &[i16],
        start: i16,
        limits: ClaimLimits,
    ) -> Result<Claim<'_>, Error> {
        self.abandon().await?;
        self.in_claim = true;
        // Sent together, run one after the other: one round trip.
        let ((), locked, horizon) = try_join3(
            self.client.batch_execute(&self.begin),
            self.statements.claim_shards.rows(&self.client, &[&candidates, &start, &limits.max_shards]),
            self.statements.horizon.row(&self.client, &[]),
        )
        .await?;
        self.bounds.begun(horizon.try_get(0)?, horizon.try_get(1)?);
        let mut shards: Vec<i16> = Vec::with_capacity(locked.len());
        for row in &locked {
            let shard = row.try_get(0)?;
            self.bounds.locked(shard, row.try_get(1)?);
            shards.push(shard);
        }
        let mut claim = Claim {
            session: self,
            rows: Vec::new(),
            behind: Vec::new(),
            retried: HashMap::new(),
            stale: Vec::new(),
        };
        if !shards.is_empty() {
            claim.fetch(&shards, limits.max_rows).await?;
        }
        Ok(claim)
    }
}

impl Claim<'_> {
    /// An equal share of each shard first; if that leaves much room although a shard has more, whatever there is.
    async fn fetch(&mut self, shards: &[i16], max_rows: i64) -> Result<(), Error> {
        let Session { client, statements, bounds, .. } = &*self.session;
        let (low, began) = (bounds.of(shards), Instant::now());
        let share = max_rows / i64::try_from(shards.len()).unwrap_or(1) + 1;
        let (blocked, mut rows) = try_join(
            statements.blocked.rows(client, &[&shards]),
            statements.fetch_pending.rows(client, &[&shards, &share, &max_rows, &low]),
        )
        .await?;
        let mut counts: BTreeMap<i16, i64> = BTreeMap::new();
        let mut first: BTreeMap<i16, i64> = BTreeMap::new();
        for row in &rows {
            let shard = row.try_get(9)?;
            *counts.entry(shard).or_default() += 1;
            if let Entry::Vacant(entry) = first.entry(shard) {
                entry.insert(row.try_get(0)?);
            }
        }
        let found = counts.values().sum::<i64>();
        // Half a claim is better than one that is read twice.
        if found < max_rows / 2 && counts.values().any(|count| *count >= share) {
            rows = statements.fetch_pending.rows(client, &[&shards, &max_rows, &max_rows, &low]).await?;
        }
        self.session.bounds.seen(shards, &first, found >= max_rows, began.elapsed());
        if blocked.is_empty() {
            self.rows = rows;
            return Ok(());
        }
        self.leave_out_blocked(&blocked, rows).await
    }

    /// Of an aggregate that waits only the row it waits for is tried, when its time has come.
    async fn leave_out_blocked(&mut self, blocked: &[Row], rows: Vec<Row>) -> Result<(), Error> {
        let mut waiting: HashMap<&str, Blocked> = HashMap::with_capacity(blocked.len());
        let mut due: HashMap<&str, i64> = HashMap::new();
        for row in blocked {
            let (aggregate, age_ms): (&str, i64) = (row.try_get(0)?, row.try_get(3)?);
            let age = Duration::from_millis(age_ms.unsigned_abs());
            waiting.insert(aggregate, Blocked { attempts: row.try_get(2)?, age });
            if row.try_get(4)? {
                due.insert(aggregate, row.try_get(1)?);
            }
        }
        let mut heads = Vec::new();
        if !due.is_empty() {
            let names: Vec<&str> = due.keys().copied().collect();
            let session = &*self.session;
            heads = session.statements.fetch_heads.rows(&session.client, &[&names]).await?;
        }
        for head in &heads {
            let aggregate: &str = head.try_get(2)?;
            due.remove(aggregate);
            if let Some(blocked) = waiting.get(aggregate) {
                self.retried.insert(head.try_get(0)?, *blocked);
            }
        }
        self.stale = due.into_keys().map(str::to_owned).collect();
        for row in rows {
            if waiting.contains_key(row.try_get::<_, &str>(2)?) {
                self.behind.push((row.try_get(0)?, row.try_get(1)?));
            } else {
                heads.push(row);
            }
        }
        self.rows = heads;
        Ok(())
    }

    /// The rows, per shard in id order.
    ///
    /// # Errors
    /// Only if the table is not the one of this crate's migrations.
    pub fn rows(&self) -> Result<Vec<PendingRow<'_>>, Error> {
        self.rows.iter().map(|row| pending_row(row, &self.retried)).collect()
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

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether settling it changes something although there is no row to send: rows are to be set aside behind one
    /// that cannot be sent, or wait for one that is gone.
    #[must_use]
    pub fn moves_others(&self) -> bool {
        !self.behind.is_empty() || !self.stale.is_empty()
    }
}

fn pending_row<'c>(row: &'c Row, retried: &HashMap<i64, Blocked>) -> Result<PendingRow<'c>, Error> {
    let id = row.try_get(0)?;
    Ok(PendingRow {
        id,
        created_at: row.try_get(1)?,
        aggregate_id: row.try_get(2)?,
        topic: row.try_get(3)?,
        payload: row.try_get(4)?,
        event_id: row.try_get(5)?,
        event_type: row.try_get(6)?,
        source: row.try_get(7)?,
        headers: headers(row.try_get(8)?),
        blocked: retried.get(&id).copied(),
    })
}

/// Any writer can put anything into the column that the table lets pass, so nothing here may fail: a row that
/// cannot be read would hold up its neighbours. What is no text becomes its JSON.
fn headers(column: Option<&str>) -> BTreeMap<String, String> {
    let Some(column) = column else { return BTreeMap::new() };
    // As nearly all are.
    if let Ok(texts) = serde_json::from_str(column) {
        return texts;
    }
    let parsed: BTreeMap<String, Json> = serde_json::from_str(column).unwrap_or_default();
    parsed
        .into_iter()
        .map(|(name, value)| match value {
            Json::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect()
}
