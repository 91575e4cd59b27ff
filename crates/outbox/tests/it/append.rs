//! Writing: the event is there if and only if the change that it tells of is.

use std::collections::BTreeMap;

use outbox::{NewEvent, append, append_all, migrations};
use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::json;
use testkit::{TestDatabase, until};

async fn shop() -> TestDatabase {
    let database = testkit::database(migrations("shop")).await;
    database.client().await.batch_execute("create table sale (id bigint primary key)").await.unwrap();
    database
}

fn sold(aggregate: &str) -> NewEvent {
    NewEvent {
        aggregate_id: aggregate.to_owned(),
        topic: "shop.v1".to_owned(),
        event_type: "sold".to_owned(),
        payload: json!({"n": 1}),
        headers: BTreeMap::new(),
    }
}

async fn rows(database: &TestDatabase) -> (i64, i64) {
    let sales = database.number("select count(*) from sale").await;
    (sales, database.number("select count(*) from outbox").await)
}

#[tokio::test]
async fn change_and_event_are_stored_together() {
    let database = shop().await;
    let tx = database.pool().await.begin().await.unwrap();
    tx.execute_unprepared("insert into sale values (1)").await.unwrap();
    let id = append(&tx, sold("sale-1")).await.unwrap();
    assert_eq!(rows(&database).await, (0, 0));
    tx.commit().await.unwrap();
    assert_eq!(rows(&database).await, (1, 1));
    assert_eq!(database.number("select id from outbox where source = 'shop'").await, id.0);
}

#[tokio::test]
async fn a_failing_second_insert_leaves_neither_row() {
    let database = shop().await;
    let pool = database.pool().await;

    let tx = pool.begin().await.unwrap();
    tx.execute_unprepared("insert into sale values (1)").await.unwrap();
    assert!(append(&tx, sold("")).await.is_err());
    assert!(tx.commit().await.is_err() || rows(&database).await == (0, 0));

    let tx = pool.begin().await.unwrap();
    append(&tx, sold("sale-1")).await.unwrap();
    assert!(tx.execute_unprepared("insert into sale values (null)").await.is_err());
    drop(tx);
    assert_eq!(rows(&database).await, (0, 0));
}

#[tokio::test]
async fn a_connection_that_dies_between_the_two_leaves_neither_row() {
    let database = shop().await;
    let tx = database.pool().await.begin().await.unwrap();
    tx.execute_unprepared("insert into sale values (1)").await.unwrap();
    let killed = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in%'";
    assert_eq!(database.number(killed).await, 1);
    assert!(append(&tx, sold("sale-1")).await.is_err());
    assert!(tx.commit().await.is_err());
    assert_eq!(rows(&database).await, (0, 0));
}

#[tokio::test]
async fn many_events_keep_their_order_and_their_fields() {
    let database = shop().await;
    let tx = database.pool().await.begin().await.unwrap();
    let events: Vec<NewEvent> = (0..500)
        .map(|n| {
            let headers = BTreeMap::from([("traceparent".to_owned(), format!("t-{n}"))]);
            NewEvent { payload: json!({"n": n, "text": "\u{1f980} \"'"}), headers, ..sold("sale-1") }
        })
        .collect();
    let ids = append_all(&tx, events).await.unwrap();
    tx.commit().await.unwrap();
    assert!(ids.is_sorted() && ids.len() == 500);
    let query = "select count(*) from (
                     select (payload->>'n')::bigint as n, row_number() over (order by id) - 1 as position,
                            headers->>'traceparent' as trace
                       from outbox) r
                  where r.n = r.position and r.trace = 't-' || r.n";
    assert_eq!(database.number(query).await, 500);
}

/// The order contract for any writer: id order is commit order, since the lock comes before the id.
#[tokio::test]
async fn outbox_append_makes_a_later_writer_of_the_aggregate_wait() {
    let database = shop().await;
    let first = database.client().await;
    let second = database.client().await;
    let call = "select outbox_append('sale-1', 'shop.v1', '{}')";
    first.batch_execute("begin").await.unwrap();
    let id: i64 = first.query_one(call, &[]).await.unwrap().get(0);

    let waiting = tokio::spawn(async move { second.query_one(call, &[]).await.unwrap().get::<_, i64>(0) });
    let blocked = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    until("the second writer to wait", async || (database.number(blocked).await > 0).then_some(())).await;
    // Another aggregate does not wait.
    assert!(database.number("select outbox_append('sale-2', 'shop.v1', '{}')").await > id);
    first.batch_execute("commit").await.unwrap();
    assert!(waiting.await.unwrap() > id);
}
