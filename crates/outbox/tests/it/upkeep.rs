//! Partitions made ahead, filled from the default partition, and dropped when everything in them is long settled.

use std::time::Duration;

use outbox::{ClaimLimits, Kept, Session, Settlement, Upkeep, keep, migrations};
use testkit::TestDatabase;
use tokio_postgres::Client;

use crate::schema::options;

const HOUR: Duration = Duration::from_secs(3600);
const UPKEEP: Upkeep = Upkeep {
    days_ahead: 2,
    retention: Some(Duration::from_secs(48 * 3600)),
    lock_timeout: Duration::from_millis(100),
    statement_timeout: Duration::from_secs(10),
};
const WRITE: &str = "insert into outbox (aggregate_id, topic, payload, created_at, published_at)
                     select 'a-' || n % 9, 't', jsonb_build_object('n', n), now() - $1::text::interval,
                            now() - $2::text::interval
                       from generate_series(1, $3::int) n";

/// Whose publisher has not been there for days.
async fn outbox() -> (TestDatabase, Client) {
    let database = testkit::database(migrations("shop")).await;
    database.drop_days().await;
    let client = database.client().await;
    (database, client)
}

/// Rows of `created` ago, published so long ago, if at all.
async fn write(client: &Client, created: &str, published: Option<&str>, rows: i32) {
    client.execute(WRITE, &[&created, &published, &rows]).await.unwrap();
}

async fn kept(client: &mut Client) -> Kept {
    keep(client, UPKEEP).await.unwrap()
}

async fn conserved(database: &TestDatabase, written: i64) {
    let there = database.number("select count(*) from outbox").await;
    let pruned = database.number("select coalesce(sum(rows), 0)::bigint from outbox_prunes").await;
    assert_eq!(there + pruned, written, "{there} there, {pruned} pruned");
}

#[tokio::test]
async fn a_new_outbox_has_what_the_upkeep_would_make() {
    let database = testkit::database(migrations("shop")).await;
    let mut client = database.client().await;
    let first = kept(&mut client).await;
    // One more if the day has changed since.
    assert!(first.made.len() <= 1 && first.moved == 0, "{first:?}");
    for created in ["0", "-1 day", "-47 hours"] {
        write(&client, created, None, 1).await;
    }
    assert_eq!(database.number("select count(*) from outbox_default").await, 0);
}

#[tokio::test]
async fn days_are_made_ahead_and_take_the_rows_of_the_default_partition_along() {
    let (database, mut client) = outbox().await;
    write(&client, "0", None, 100).await;
    write(&client, "30 days", Some("1 hour"), 10).await;
    write(&client, "-1 day", None, 1).await;
    // Beyond what is made ahead.
    write(&client, "-50 days", None, 1).await;

    let first = kept(&mut client).await;
    assert_eq!((first.made.len(), first.moved, first.left), (5, 112, vec![]));
    assert_eq!(database.number("select count(*) from outbox_default").await, 0);
    assert_eq!(kept(&mut client).await, Kept::default(), "a second run has nothing to do");
    let no_room = "select count(*) from pg_constraint c
                     join pg_inherits i on i.inhrelid = c.conrelid join pg_class k on k.oid = c.conindid
                    where i.inhparent = 'outbox'::regclass and c.contype = 'p'
                      and k.reloptions is distinct from array['fillfactor=48']";
    assert_eq!(database.number(no_room).await, 0, "in a primary key, for the marks");
    conserved(&database, 112).await;

    write(&client, "0", None, 1).await;
    assert_eq!(database.number("select count(*) from outbox_default").await, 0);
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let pending = session.pending_shards().await.unwrap();
    let limits = ClaimLimits { max_shards: 64, max_rows: 1000 };
    let claim = session.claim(&pending, 0, limits).await.unwrap();
    assert_eq!(claim.len(), 103, "all that waits is found in the partitions");
    let all: Vec<usize> = (0..claim.len()).collect();
    let settlement = Settlement { acknowledged: &all, ..Settlement::default() };
    assert_eq!(claim.settle(settlement).await.unwrap(), 103);
}

#[tokio::test]
async fn a_day_too_large_to_be_moved_at_once_is_moved_in_chunks_when_it_is_published() {
    let (database, mut client) = outbox().await;
    write(&client, "0", None, 20_001).await;
    let first = kept(&mut client).await;
    assert!(first.moved == 0 && first.left[0].1.contains("20001 row(s)"), "{first:?}");
    let mark = "update outbox set published_at = now() where id % 3 > 0";
    client.execute(mark, &[]).await.unwrap();
    let second = kept(&mut client).await;
    assert_eq!((second.moved, second.left), (20_001, vec![]));
    assert_eq!(database.number("select count(*) from outbox where published_at is null").await, 6667);
    conserved(&database, 20_001).await;
}

#[tokio::test]
async fn only_what_was_settled_long_ago_is_dropped() {
    let (database, mut client) = outbox().await;
    write(&client, "10 days", Some("9 days"), 50).await;
    write(&client, "11 days", Some("9 days"), 50).await;
    write(&client, "11 days", Some("1 day"), 1).await;
    write(&client, "12 days", Some("9 days"), 50).await;
    write(&client, "12 days", None, 1).await;
    write(&client, "13 days", Some("9 days"), 50).await;
    let parked = "update outbox set published_at = null, parked_at = now(), last_error = 'x'
                   where id = (select max(id) from outbox)";
    client.execute(parked, &[]).await.unwrap();
    write(&client, "0", Some("0"), 7).await;

    let run = kept(&mut client).await;
    assert_eq!(run.pruned.iter().map(|(_, rows)| *rows).collect::<Vec<_>>(), [50]);
    conserved(&database, 209).await;
    for statement in [
        "update outbox set published_at = now() - interval '3 days' where published_at is null and parked_at is null",
        "update outbox set parked_at = null, discarded_at = now() - interval '3 days' where parked_at is not null",
        "update outbox set published_at = now() - interval '3 days' where published_at > now() - interval '2 days'
            and created_at < now() - interval '2 days'",
    ] {
        client.execute(statement, &[]).await.unwrap();
        assert_eq!(kept(&mut client).await.pruned.len(), 1, "{statement}");
    }
    conserved(&database, 209).await;
    assert_eq!(database.number("select count(*) from outbox").await, 7);
}

/// The race: a row that is written to an old partition while it is being pruned.
#[tokio::test]
async fn an_event_committed_between_the_look_and_the_lock_is_kept() {
    let (database, mut client) = outbox().await;
    write(&client, "10 days", Some("9 days"), 5).await;
    let none = Upkeep { retention: None, ..UPKEEP };
    keep(&mut client, none).await.unwrap();

    // A reader is in the way of the lock, and with no snapshot not in that of the index.
    let mut other = database.client().await;
    let reader = other.transaction().await.unwrap();
    reader.batch_execute("select from outbox").await.unwrap();
    let given_up = kept(&mut client).await;
    assert_eq!((given_up.pruned.len(), given_up.left.len()), (0, 1), "{given_up:?}");
    reader.rollback().await.unwrap();

    let mut writer = database.client().await;
    let late = writer.transaction().await.unwrap();
    late.execute(WRITE, &[&"10 days", &None::<&str>, &1]).await.unwrap();
    // Its row cannot be seen, and its lock is waited for.
    let patient = Upkeep { lock_timeout: HOUR, ..UPKEEP };
    let waiting = tokio::spawn(async move { keep(&mut client, patient).await });
    let blocked = "select count(*) from pg_stat_activity
                    where wait_event_type = 'Lock' and query like 'set local enable_seqscan%'
                      and datname = current_database()";
    testkit::until("the pruning waits", async || (database.number(blocked).await == 1).then_some(())).await;
    late.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().pruned, [], "the late row is seen under the lock");
    conserved(&database, 6).await;
    assert_eq!(database.number("select count(*) from outbox where published_at is null").await, 1);
}

#[tokio::test]
async fn a_claim_that_is_open_is_not_disturbed_and_nobody_waits_longer_than_the_lock_timeout() {
    let (database, mut client) = outbox().await;
    write(&client, "0", None, 10).await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let pending = session.pending_shards().await.unwrap();
    let limits = ClaimLimits { max_shards: 64, max_rows: 1000 };
    let claim = session.claim(&pending, 0, limits).await.unwrap();

    let run = kept(&mut client).await;
    assert!(run.moved == 0 && run.left.iter().any(|(_, why)| why == "others hold the table"), "{run:?}");
    write(&client, "0", None, 1).await;
    let all: Vec<usize> = (0..claim.len()).collect();
    let settlement = Settlement { acknowledged: &all, ..Settlement::default() };
    assert_eq!(claim.settle(settlement).await.unwrap(), 10);
    assert_eq!(kept(&mut client).await.moved, 11);
    conserved(&database, 11).await;
}

/// A writer that comes while a day gets its partition must not have chosen the default partition.
#[tokio::test]
async fn an_insert_that_meets_a_new_partition_does_not_fail() {
    let (database, mut client) = outbox().await;
    write(&client, "0", None, 1).await;
    let mut other = database.client().await;
    let holder = other.transaction().await.unwrap();
    holder.batch_execute("lock table outbox_default in share mode").await.unwrap();

    let patient = Upkeep { lock_timeout: HOUR, ..UPKEEP };
    let keeping = tokio::spawn(async move { keep(&mut client, patient).await });
    let waiting = async |count| {
        let blocked = "select count(*) from pg_stat_activity
                        where wait_event_type = 'Lock' and datname = current_database()";
        testkit::until("they wait", async || (database.number(blocked).await == count).then_some(())).await;
    };
    waiting(1).await;
    let writer = database.client().await;
    let writing = tokio::spawn(async move { write(&writer, "0", None, 1).await });
    waiting(2).await;
    holder.rollback().await.unwrap();
    assert_eq!(keeping.await.unwrap().unwrap().made.len(), 3);
    writing.await.unwrap();
    assert_eq!(database.number("select count(*) from outbox_default").await, 0);
    conserved(&database, 2).await;
}
