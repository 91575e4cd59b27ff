//! What the table refuses, what it fills in, and what must never change about it.

use outbox::{Session, SessionOptions, migrations, status};
use std::time::Duration;

#[tokio::test]
async fn three_columns_are_enough() {
    let database = testkit::database(migrations("shop")).await;
    let client = database.client().await;
    client
        .batch_execute(
            "insert into outbox (aggregate_id, topic, payload) values
                 ('a', 't', '{\"type\": \"told\"}'), ('a', 't', '{\"x\": 1}'), ('a', 't', '[1]');",
        )
        .await
        .unwrap();
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let shards = session.pending_shards().await.unwrap();
    let limits = outbox::ClaimLimits { max_shards: 64, max_rows: 10 };
    let claim = session.claim(&shards, 0, limits).await.unwrap();
    let rows = claim.rows().unwrap();
    let types: Vec<&str> = rows.iter().map(|row| row.event_type).collect();
    assert_eq!(types, ["told", "unknown", "unknown"]);
    assert!(rows.iter().all(|row| row.source == "shop" && !row.event_id.is_nil()));
    drop(claim);
    let status = status(&client).await.unwrap();
    assert_eq!((status.total, status.pending, status.published), (3, 3, 0));
}

#[tokio::test]
async fn rows_that_could_not_be_sent_are_not_born() {
    let database = testkit::database(migrations("shop")).await;
    let client = database.client().await;
    let long = "x".repeat(outbox::MAX_PAYLOAD_BYTES);
    for (values, constraint) in [
        ("('', 't', '{}')".to_owned(), "outbox_aggregate_id_length"),
        ("('a', '', '{}')".to_owned(), "outbox_topic_name"),
        ("('a', 'no spaces', '{}')".to_owned(), "outbox_topic_name"),
        (format!("('a', '{}', '{{}}')", "t".repeat(250)), "outbox_topic_name"),
        (format!("('a', 't', '\"{long}\"')"), "outbox_payload_size"),
    ] {
        let insert = format!("insert into outbox (aggregate_id, topic, payload) values {values}");
        let error = client.batch_execute(&insert).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().constraint(), Some(constraint));
    }
    let date =
        "insert into outbox (aggregate_id, topic, payload, created_at) values ('a', 't', '{}', 'infinity')";
    let error = client.batch_execute(date).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("outbox_created_at_sane"));
    let two_states = "insert into outbox (aggregate_id, topic, payload, published_at, parked_at, last_error)
                      values ('a', 't', '{}', now(), now(), 'x')";
    let error = client.batch_execute(two_states).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("outbox_one_state"));
}

/// Every check runs at the insert and again at the mark. A pattern with a bounded repetition is a hundred times as dear
/// as all others together.
#[tokio::test]
async fn no_check_repeats_a_pattern_a_counted_number_of_times() {
    let database = testkit::database(migrations("shop")).await;
    let dear = "select count(*) from pg_constraint
                 where conrelid = 'outbox'::regclass and pg_get_constraintdef(oid) ~ '~.*\\{\\d'";
    assert_eq!(database.number(dear).await, 0);
    let checks = "select count(*) from pg_constraint where conrelid = 'outbox'::regclass and contype = 'c'";
    assert!(database.number(checks).await > 5);
}

/// A cached sequence hands one session ids that are below those of a later commit.
#[tokio::test]
async fn the_sequence_caches_nothing_and_the_shard_count_is_frozen() {
    let database = testkit::database(migrations("shop")).await;
    let cache = "select cache_size from pg_sequences where sequencename = 'outbox_id_seq'";
    assert_eq!(database.number(cache).await, 1);
    assert_eq!(database.number("select count(*) from outbox_shard").await, i64::from(outbox::SHARDS));
    // order-43 has been in this shard since the first version.
    let shard = "insert into outbox (aggregate_id, topic, payload) values ('order-43', 't', '{}')
                 returning shard::bigint";
    assert_eq!(database.number(shard).await, 13);
}

#[tokio::test]
async fn migrations_go_down_and_up_again_and_twice() {
    let database = testkit::database(migrations("shop")).await;
    let pool = database.pool().await;
    database::migrate(&pool, migrations("shop")).await.unwrap();
    database::revert(&pool, migrations("shop")).await.unwrap();
    assert_eq!(database.number("select count(*) from pg_class where relname like 'outbox%'").await, 0);
    let (one, two) = tokio::join!(
        database::migrate(&pool, migrations("shop")),
        database::migrate(&pool, migrations("shop"))
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(database.number("select count(*) from outbox").await, 0);
}

#[tokio::test]
async fn a_source_name_that_is_no_name_is_refused() {
    let database = testkit::database(Vec::new()).await;
    let pool = database.pool().await;
    assert!(database::migrate(&pool, migrations("It's mine")).await.is_err());
}

pub(crate) fn options(url: &str) -> SessionOptions {
    SessionOptions {
        url: url.to_owned(),
        connect_timeout: Duration::from_secs(10),
        idle_in_transaction_timeout: Duration::from_secs(30),
        keepalive: Duration::from_secs(45),
        prepared: true,
    }
}
