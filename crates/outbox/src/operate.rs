//! What a person can do about an outbox: see what cannot be sent, decide about it, and stop it all. Each decision is
//! written down with who and why, and holds the row's shard, so that no publisher is in the middle of it.

use database::Decider;
use time::OffsetDateTime;
use tokio_postgres::{Client, Row, Transaction};

use crate::Error;

const PARKED: &str = include_str!("../sql/parked.sql");

/// A row that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The row.
    pub outbox_id: i64,
    /// Whose event.
    pub aggregate_id: String,
    /// Where it was to go.
    pub topic: String,
    /// What happened.
    pub event_type: String,
    /// Parked: waits for a person. Else it is tried again by itself.
    pub parked: bool,
    /// Why it cannot be sent.
    pub reason: String,
    /// How often it was tried.
    pub attempts: i32,
    /// Since the first try, or since it was parked.
    pub age_ms: i64,
    /// How many later rows of its aggregate wait behind it, as far as publishers have met them.
    pub behind: i64,
}

/// What to do about a row that cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Try it again now; its aggregate goes on when it is sent.
    Redrive,
    /// Leave it parked, and let its aggregate go on without it.
    SkipHead,
    /// Give it up for good, and let its aggregate go on without it.
    Discard,
}

impl Action {
    /// As it is written down.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::SkipHead => "skip-head",
            Self::Discard => "discard",
        }
    }
}

/// At most `limit` rows that cannot be sent, oldest first.
///
/// # Errors
/// The database's.
pub async fn parked(client: &Client, limit: i64) -> Result<Vec<Parked>, Error> {
    let rows = client.query(PARKED, &[&None::<i64>, &limit]).await?;
    rows.iter().map(|row| found(row).map(|found| found.head)).collect()
}

/// Does `action` to row `outbox_id`; with `dry_run`, nothing. Returns the row as it was, with what waited behind it.
/// Waits at most ten seconds for the publisher that holds the row's shard.
///
/// # Errors
/// [`Error::NotParked`]; the database's. Nothing has changed then.
pub async fn decide(
    client: &mut Client,
    action: Action,
    outbox_id: i64,
    decider: Decider<'_>,
    dry_run: bool,
) -> Result<Parked, Error> {
    let tx = client.transaction().await?;
    tx.batch_execute("set local lock_timeout = '10s'").await?;
    let found = find(&tx, outbox_id).await?.ok_or(Error::NotParked(outbox_id))?;
    let head = &found.head;
    let at: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&head.outbox_id, &found.created_at];
    match action {
        Action::Redrive => {
            let again = "update outbox set parked_at = null, held = $3 where id = $1 and created_at = $2";
            tx.execute(again, &[at[0], at[1], &found.blocks]).await?;
            let now = "update outbox_blocked set retry_at = clock_timestamp() where aggregate_id = $1";
            tx.execute(now, &[&head.aggregate_id]).await?;
        }
        Action::SkipHead if !head.parked => return Err(Error::NotParked(outbox_id)),
        Action::SkipHead => unblock(&tx, &head.aggregate_id, found.blocks).await?,
        Action::Discard => {
            let give_up = "update outbox set discarded_at = clock_timestamp(), parked_at = null, held = false
                            where id = $1 and created_at = $2";
            tx.execute(give_up, &at).await?;
            unblock(&tx, &head.aggregate_id, found.blocks).await?;
        }
    }
    // Rows with low ids may be pending again.
    let rise = "update outbox_shard set epoch = epoch + 1 where shard = (select shard from outbox
                 where id = $1 and created_at = $2)";
    tx.execute(rise, &at).await?;
    write_down(&tx, action.as_str(), Some(head), decider).await?;
    if dry_run {
        tx.rollback().await?
    } else {
        tx.commit().await?
    }
    Ok(found.head)
}

struct Found {
    head: Parked,
    created_at: OffsetDateTime,
    /// Its aggregate waits for it.
    blocks: bool,
}

/// The row, with its shard locked before it is read.
async fn find(tx: &Transaction<'_>, outbox_id: i64) -> Result<Option<Found>, Error> {
    let lock =
        "select s.shard from outbox o join outbox_shard s using (shard) where o.id = $1 for update of s";
    if tx.query_opt(lock, &[&outbox_id]).await?.is_none() {
        return Ok(None);
    }
    // A statement of its own: it sees what the shard's last holder has done.
    tx.query_opt(PARKED, &[&outbox_id, &1_i64]).await?.as_ref().map(found).transpose()
}

fn found(row: &Row) -> Result<Found, Error> {
    let head = Parked {
        outbox_id: row.try_get(0)?,
        aggregate_id: row.try_get(1)?,
        topic: row.try_get(2)?,
        event_type: row.try_get(3)?,
        parked: row.try_get(4)?,
        reason: row.try_get(5)?,
        attempts: row.try_get(6)?,
        age_ms: row.try_get(7)?,
        behind: row.try_get(8)?,
    };
    Ok(Found { head, created_at: row.try_get(9)?, blocks: row.try_get(10)? })
}

async fn unblock(tx: &Transaction<'_>, aggregate_id: &str, blocks: bool) -> Result<(), Error> {
    if blocks {
        tx.execute(include_str!("../sql/unblock.sql"), &[&[aggregate_id].as_slice()]).await?;
    }
    Ok(())
}

/// Stops publishing of this outbox, or goes on with it. Publishers see it at their next look; what is under way is
/// ended first. False if it was so already.
///
/// # Errors
/// The database's.
pub async fn pause(client: &mut Client, paused: bool, decider: Decider<'_>) -> Result<bool, Error> {
    let tx = client.transaction().await?;
    let change = "
        update outbox_control
           set paused_at = case when $1 then clock_timestamp() end, paused_by = case when $1 then $2 end,
               paused_why = case when $1 then $3 end
         where (paused_at is not null) <> $1";
    let changed = tx.execute(change, &[&paused, &decider.who, &decider.why]).await? > 0;
    if changed {
        write_down(&tx, if paused { "pause" } else { "resume" }, None, decider).await?;
    }
    tx.commit().await?;
    Ok(changed)
}

async fn write_down(
    tx: &Transaction<'_>,
    action: &str,
    head: Option<&Parked>,
    decider: Decider<'_>,
) -> Result<(), Error> {
    let (id, aggregate) = (head.map(|head| head.outbox_id), head.map(|head| head.aggregate_id.as_str()));
    let note = "insert into outbox_decisions (action, outbox_id, aggregate_id, by_whom, why)
                values ($1, $2, $3, $4, $5)";
    tx.execute(note, &[&action, &id, &aggregate, &decider.who, &decider.why]).await?;
    Ok(())
}
