//! Partitions by day, and rows out of the default partition.

use std::collections::BTreeSet;

use time::{Date, Duration};
use tokio_postgres::{Client, Transaction};

use super::{Kept, Upkeep, begin, bounded, name, or_left};
use crate::Error;

/// So many rows are moved while nobody can use the default partition.
const AT_ONCE: i64 = 20_000;
const CHUNK: i64 = 5_000;

/// All columns but `shard`, which is generated.
const COLUMNS: &str = "id, aggregate_id, topic, payload, created_at, published_at, event_id, event_type, source, \
                       headers, attempts, last_error, parked_at, discarded_at, held";

pub(super) async fn make(client: &mut Client, upkeep: Upkeep, kept: &mut Kept) -> Result<(), Error> {
    let today: Date = client.query_one("select (now() at time zone 'UTC')::date", &[]).await?.try_get(0)?;
    let mut days: BTreeSet<Date> = BTreeSet::new();
    for row in client.query(include_str!("../../sql/default_days.sql"), &[]).await? {
        days.insert(row.try_get(0)?);
    }
    days.extend((0..=i64::from(upkeep.days_ahead)).map(|ahead| today + Duration::days(ahead)));
    let mut there: BTreeSet<String> = BTreeSet::new();
    for row in client.query(include_str!("../../sql/partitions.sql"), &[]).await? {
        there.insert(row.try_get(0)?);
    }
    for day in days.into_iter().filter(|day| !there.contains(&name(*day))) {
        make_one(client, upkeep, day, kept).await?;
    }
    Ok(())
}

async fn make_one(client: &mut Client, upkeep: Upkeep, day: Date, kept: &mut Kept) -> Result<(), Error> {
    let (table, from) = (name(day), begin(day));
    let to = from + Duration::DAY;
    // With the rule as a check, attaching need not read the rows. Room in the primary key: see migration 0006.
    let create = format!(
        "create table if not exists {table} (like outbox including all,
             constraint {table}_day check (created_at >= '{from}' and created_at < '{to}'));
         alter index {table}_pkey set (fillfactor = 48)"
    );
    client.batch_execute(&create).await?;
    let mut moved = 0;
    let count = "select count(*) from outbox_default where created_at >= $1 and created_at < $2";
    loop {
        let rows: i64 = client.query_one(count, &[&from, &to]).await?.try_get(0)?;
        if rows <= AT_ONCE {
            break;
        }
        let chunk = client.execute(&settled_to(&table), &[&from, &to, &CHUNK]).await?;
        moved += chunk;
        if chunk == 0 {
            kept.moved += moved;
            let why = format!("{rows} row(s) of it are in the default partition and not published yet");
            kept.left.push((table, why));
            return Ok(());
        }
    }
    let tx = bounded(client, upkeep).await?;
    let done = attach(&tx, &table, day, &mut moved).await;
    if or_left(done, &table, kept)? && or_left(tx.commit().await, &table, kept)? {
        kept.made.push(table);
    }
    kept.moved += moved;
    Ok(())
}

/// Moves a chunk of rows that nobody changes any more. Until the partition is attached they cannot be seen.
fn settled_to(table: &str) -> String {
    format!(
        "with moved as (
             delete from outbox_default
              where ctid = any (array(
                    select ctid from outbox_default
                     where created_at >= $1 and created_at < $2
                       and (published_at is not null or discarded_at is not null)
                     limit $3::bigint))
             returning {COLUMNS})
         insert into {table} ({COLUMNS}) select {COLUMNS} from moved"
    )
}

/// The rest of the day's rows, and the partition itself, at once. Publishers that hold a claim are waited for, so no
/// row is moved that somebody is about to mark.
async fn attach(
    tx: &Transaction<'_>,
    table: &str,
    day: Date,
    moved: &mut u64,
) -> Result<(), tokio_postgres::Error> {
    let (from, to) = (begin(day), begin(day) + Duration::DAY);
    // The parent too, against writers: one that has chosen the default partition already would fail once the day has a
    // partition of its own.
    tx.batch_execute(
        "lock table only outbox in share row exclusive mode;
         lock table outbox_default in access exclusive mode",
    )
    .await?;
    let rest = format!(
        "with moved as (
             delete from outbox_default where created_at >= $1 and created_at < $2 returning {COLUMNS})
         insert into {table} ({COLUMNS}) select {COLUMNS} from moved"
    );
    let rest = tx.execute(&rest, &[&from, &to]).await?;
    tx.batch_execute(&format!(
        "alter table outbox attach partition {table} for values from ('{from}') to ('{to}');
         alter table {table} drop constraint {table}_day"
    ))
    .await?;
    *moved += rest;
    Ok(())
}
