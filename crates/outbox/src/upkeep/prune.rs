//! Old partitions dropped.
//!
//! First locked, *then* looked at in a statement of its own: whoever looks first and locks later loses an event that is
//! committed in between.

use std::time::Duration;

use time::{OffsetDateTime, UtcOffset};
use tokio_postgres::{Client, Transaction};

use super::{Kept, Upkeep, bounded, name, or_left};
use crate::Error;

pub(super) async fn prune(
    client: &mut Client,
    upkeep: Upkeep,
    retention: Duration,
    kept: &mut Kept,
) -> Result<(), Error> {
    let now: OffsetDateTime = client.query_one("select clock_timestamp()", &[]).await?.try_get(0)?;
    let before = now - retention;
    for row in client.query(include_str!("../../sql/partitions.sql"), &[]).await? {
        let table: String = row.try_get(0)?;
        // Its day must have ended so long ago, too.
        if table >= name(before.to_offset(UtcOffset::UTC).date()) {
            continue;
        }
        let Some(rows) = settled_rows(client, &table, before).await? else { continue };
        let indexed = index(client, upkeep, &table).await;
        if or_left(indexed, &table, kept)? {
            prune_one(client, upkeep, &table, rows, before, kept).await?;
        }
    }
    Ok(())
}

/// Answered by the indexes of what can be sent, is held, is parked.
fn none_is_unsettled(table: &str) -> String {
    format!(
        "select not exists (select from {table}
                             where published_at is null and parked_at is null and discarded_at is null and not held)
            and not exists (select from {table} where held)
            and not exists (select from {table} where parked_at is not null)"
    )
}

/// How many rows there are, if all of them were settled before that time. Without a lock, so it may take its time; what
/// comes later is settled later, which the look under the lock finds.
async fn settled_rows(
    client: &Client,
    table: &str,
    before: OffsetDateTime,
) -> Result<Option<i64>, tokio_postgres::Error> {
    if !client.query_one(&none_is_unsettled(table), &[]).await?.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let count = format!(
        "select count(*), count(*) filter (where coalesce(published_at, discarded_at) < $1) from {table}"
    );
    let counted = client.query_one(&count, &[&before]).await?;
    let (rows, settled): (i64, i64) = (counted.try_get(0)?, counted.try_get(1)?);
    Ok((rows == settled).then_some(rows))
}

/// For the look under the lock: a small index over a table that is written no more, made without blocking writers.
async fn index(client: &Client, upkeep: Upkeep, table: &str) -> Result<(), tokio_postgres::Error> {
    let valid = "select indisvalid from pg_index where indexrelid = to_regclass($1)";
    let name = format!("{table}_settled");
    let valid: Option<bool> = match client.query_opt(valid, &[&name]).await? {
        Some(row) => Some(row.try_get(0)?),
        None => None,
    };
    let made = async {
        let timeout = format!("set lock_timeout = {}", upkeep.lock_timeout.as_millis());
        client.batch_execute(&timeout).await?;
        if valid == Some(false) {
            // An earlier run gave up in the middle.
            client.batch_execute(&format!("drop index {name}")).await?;
        }
        let create =
            format!("create index concurrently {name} on {table} using brin (published_at, discarded_at)");
        client.batch_execute(&create).await
    };
    let made = if valid == Some(true) { Ok(()) } else { made.await };
    client.batch_execute("reset lock_timeout").await?;
    made
}

async fn prune_one(
    client: &mut Client,
    upkeep: Upkeep,
    table: &str,
    rows: i64,
    before: OffsetDateTime,
    kept: &mut Kept,
) -> Result<(), Error> {
    let tx = bounded(client, upkeep).await?;
    let mut free = false;
    let done = drop_if_settled(&tx, table, rows, before, &mut free).await;
    if or_left(done, table, kept)? && free && or_left(tx.commit().await, table, kept)? {
        kept.pruned.push((table.to_owned(), rows));
    }
    Ok(())
}

async fn drop_if_settled(
    tx: &Transaction<'_>,
    table: &str,
    rows: i64,
    before: OffsetDateTime,
    free: &mut bool,
) -> Result<(), tokio_postgres::Error> {
    // The parent first, as everybody else does; dropping a partition needs it.
    tx.batch_execute(&format!(
        "set local enable_seqscan = off;
         lock table only outbox in access exclusive mode;
         lock table {table} in access exclusive mode"
    ))
    .await?;
    // Each by an index: this is the time in which everybody waits.
    let look = format!(
        "{}
            and not exists (select from {table} where published_at >= $1)
            and not exists (select from {table} where discarded_at >= $1)",
        none_is_unsettled(table)
    );
    *free = tx.query_one(&look, &[&before]).await?.try_get(0)?;
    if *free {
        tx.batch_execute(&format!("drop table {table}")).await?;
        let note = "insert into outbox_prunes (partition, rows) values ($1, $2)";
        tx.execute(note, &[&table, &rows]).await?;
    }
    Ok(())
}
