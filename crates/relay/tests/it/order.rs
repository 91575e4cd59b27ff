//! Transactions that commit late.

use relay::Mode;
use testkit::{TestDatabase, history, relay_options, start_relay, until};
use tokio_util::sync::CancellationToken;

async fn published(database: &TestDatabase) -> i64 {
    database.number("select count(published_at) from outbox").await
}

/// A lower id that commits after higher ones were published: a cursor by id would skip it.
#[tokio::test]
async fn a_late_commit_with_a_lower_id_is_not_skipped() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    let (late, early) = (database.client().await, database.client().await);
    let shutdown = CancellationToken::new();
    let relay = start_relay(&database.url, &kafka, relay_options(), Mode::Forever, &shutdown);

    let insert = |n: u32| {
        format!("insert into outbox (aggregate_id, topic, payload) values ('a-{n}', '{topic}', '{{}}')")
    };
    late.batch_execute(&format!("begin; {}", insert(1))).await.unwrap();
    for n in 2..100 {
        early.batch_execute(&insert(n)).await.unwrap();
    }
    until("the early ones to be published", async || (published(&database).await == 98).then_some(())).await;
    late.batch_execute("commit").await.unwrap();
    until("the late one to be published", async || (published(&database).await == 99).then_some(())).await;
    shutdown.cancel();
    relay.await.unwrap();
    assert_eq!(history(&testkit::read(&topic).await).ids.len(), 99);
}

/// The late transaction and a newer event of the same aggregate: by the order contract the newer one waits for the
/// aggregate, so it is neither skipped nor overtaken, while other aggregates flow.
#[tokio::test]
async fn a_newer_event_of_the_same_aggregate_does_not_overtake() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    let (late, newer, other) = (database.client().await, database.client().await, database.client().await);
    let shutdown = CancellationToken::new();
    let relay = start_relay(&database.url, &kafka, relay_options(), Mode::Forever, &shutdown);

    let append = |aggregate: &str| format!("select outbox_append('{aggregate}', '{topic}', '{{}}')");
    late.batch_execute(&format!("begin; {}", append("a"))).await.unwrap();
    let call = append("a");
    let waiting = tokio::spawn(async move { newer.batch_execute(&call).await.unwrap() });
    let blocked = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    until("the newer writer to wait", async || (database.number(blocked).await > 0).then_some(())).await;
    other.batch_execute(&append("b")).await.unwrap();
    until("the other to be published", async || (published(&database).await == 1).then_some(())).await;

    late.batch_execute("commit").await.unwrap();
    waiting.await.unwrap();
    until("all to be published", async || (published(&database).await == 3).then_some(())).await;
    shutdown.cancel();
    relay.await.unwrap();
    let history = history(&testkit::read(&topic).await);
    assert_eq!(history.first_seen["a"].len(), 2);
    assert_eq!(history.out_of_order(), [""; 0]);
}
