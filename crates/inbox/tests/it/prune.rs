//! Old ids are forgotten, and none that may still be asked for.

use std::{
    collections::BTreeMap,
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use inbox::{Error, Options, check, keep_pruned, migrations, prune};
use sea_orm::TransactionTrait;
use testkit::TestDatabase;
use tokio_util::sync::CancellationToken;

use crate::{accept, envelope};

const DAY: Duration = Duration::from_secs(24 * 3600);
const DAY_MS: u64 = 24 * 3600 * 1000;

/// `count` ids of `consumer` from `from` on, applied `days` days ago.
async fn applied(database: &TestDatabase, consumer: &str, from: i64, count: i64, days: i64) {
    let sql = "insert into processed_outbox_ids (outbox_id, source, event_id, consumer, processed_at)
               select id, 'a', lpad(to_hex(id), 32, '0')::uuid, $1, now() - make_interval(days => $4::int)
                 from generate_series($2::bigint, $2 + $3::bigint - 1) as id";
    let days = i32::try_from(days).unwrap();
    database.client().await.execute(sql, &[&consumer, &from, &count, &days]).await.unwrap();
}

fn options() -> Options {
    Options { retention_ms: 3 * DAY_MS, longest_replay_ms: DAY_MS, prune_every_ms: 10, prune_chunk_rows: 10 }
}

#[tokio::test]
async fn only_what_is_old_and_of_this_consumer_is_deleted_in_chunks() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    applied(&database, "c", 1, 25, 8).await;
    applied(&database, "c", 101, 5, 6).await;
    applied(&database, "d", 1, 7, 8).await;
    // Each statement deletes ten at most, so 25 take three.
    let client = database.client().await;
    client
        .batch_execute(
            "create table chunks (deleted bigint);
             create function note() returns trigger language plpgsql as
                 $$ begin insert into chunks select count(*) from gone; return null; end $$;
             create trigger note after delete on processed_outbox_ids
                 referencing old table as gone for each statement execute function note()",
        )
        .await
        .unwrap();
    assert_eq!(prune(&pool, "c", 7 * DAY, 10).await.unwrap(), 25);
    assert_eq!(database.number("select max(deleted) from chunks").await, 10);
    assert_eq!(database.number("select count(*) from processed_outbox_ids where consumer = 'c'").await, 5);
    assert_eq!(database.number("select count(*) from processed_outbox_ids where consumer = 'd'").await, 7);
    assert_eq!(prune(&pool, "c", 7 * DAY, 10).await.unwrap(), 0);

    // Younger than the retention: still known. Pruned: new again, which is why the law must hold.
    let tx = pool.begin().await.unwrap();
    assert_eq!(accept(&tx, "c", &[&envelope(101, "a", 101), &envelope(1, "a", 1)]).await, [false, true]);
}

#[tokio::test]
async fn two_at_once_delete_each_id_once_and_do_not_wait_for_each_other() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    applied(&database, "c", 1, 1000, 8).await;
    // Somebody holds the oldest ones: they are skipped, not waited for.
    let mut person = database.client().await;
    let held = person.transaction().await.unwrap();
    held.batch_execute("select from processed_outbox_ids where outbox_id <= 3 for update").await.unwrap();
    let both = async { tokio::join!(prune(&pool, "c", DAY, 7), prune(&pool, "c", DAY, 7)) };
    let (one, two) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("no wait");
    assert_eq!(one.unwrap() + two.unwrap(), 997);
    held.rollback().await.unwrap();
    assert_eq!(prune(&pool, "c", DAY, 7).await.unwrap(), 3);
}

#[tokio::test]
async fn pruning_walks_the_index() {
    let database = testkit::database(migrations()).await;
    applied(&database, "c", 1, 20_000, 2).await;
    applied(&database, "d", 1, 20_000, 9).await;
    let client = database.client().await;
    client.batch_execute("analyze processed_outbox_ids").await.unwrap();
    let sql = format!("explain {}", include_str!("../../sql/prune.sql"))
        .replace("$1", "'c'")
        .replace("$2", "86400000")
        .replace("$3", "1000");
    let plan = client.query(&sql, &[]).await.unwrap();
    let plan: Vec<&str> = plan.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("processed_outbox_ids_processed_at"), "{plan}");
    assert!(plan.contains("Tid Scan") && !plan.contains("Seq Scan"), "{plan}");
}

#[tokio::test]
async fn the_law_is_held_against_what_the_topics_keep() {
    let topics = |kept_ms: Option<u64>| BTreeMap::from([("orders".to_owned(), kept_ms)]);
    let answer = |kept_ms: Option<u64>| move || std::future::ready(Ok::<_, io::Error>(topics(kept_ms)));
    // Three days remembered, one for a replay: less than two are left for the topic.
    assert!(check(&options(), answer(Some(2 * DAY_MS - 1))).await.unwrap());
    for kept_ms in [Some(2 * DAY_MS), Some(u64::MAX), None] {
        let said = check(&options(), answer(kept_ms)).await.unwrap_err().to_string();
        assert!(said.contains("`inbox.retention_ms` is 259200000"), "{said}");
        assert!(said.contains("`retention.ms` of topic `orders`"), "{said}");
        assert!(said.contains("`inbox.longest_replay_ms`, which is 86400000"), "{said}");
    }
    let for_ever = Options { retention_ms: 0, ..options() };
    assert!(check(&for_ever, answer(None)).await.unwrap());
    let away = || std::future::ready(Err(io::Error::other("away")));
    assert!(!check(&options(), away).await.unwrap());
}

/// Answers in turn with what there is, an error for none; then with the last for ever.
fn answers(
    kept: &[Option<u64>],
) -> impl Fn() -> std::future::Ready<io::Result<BTreeMap<String, Option<u64>>>> {
    let (kept, asked) = (kept.to_vec(), AtomicUsize::new(0));
    move || {
        let turn = asked.fetch_add(1, Relaxed).min(kept.len() - 1);
        let answer = kept[turn].map(|ms| BTreeMap::from([("orders".to_owned(), Some(ms))]));
        std::future::ready(answer.ok_or_else(|| io::Error::other("away")))
    }
}

#[tokio::test]
async fn nothing_is_pruned_before_the_law_was_seen_to_hold() {
    let database = testkit::database(migrations()).await;
    applied(&database, "c", 1, 25, 8).await;
    let left = "select count(*) from processed_outbox_ids";

    // The broker was away at the start, and what it then tells breaks the law: the task fails, and so the service.
    let token = CancellationToken::new();
    let late = answers(&[None, Some(9 * DAY_MS)]);
    let ended = keep_pruned(database.pool().await, "c", options(), late, false, token.clone()).await;
    assert!(matches!(ended, Err(Error::Forgets { .. })), "{ended:?}");
    assert_eq!(database.number(left).await, 25);

    // A topic that is altered while the service runs, and altered back.
    let altered = answers(&[Some(9 * DAY_MS), None, Some(DAY_MS)]);
    let task = tokio::spawn(keep_pruned(database.pool().await, "c", options(), altered, true, token.clone()));
    testkit::until("the old ids to go", async || (database.number(left).await == 0).then_some(())).await;
    token.cancel();
    task.await.unwrap().unwrap();
}
