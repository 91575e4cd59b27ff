//! Wake-ups: a relay that looks once a minute publishes at once when it is woken.

use relay::{Mode, Options, Setup};
use testkit::{TestDatabase, relay_options, relay_setup, until};
use tokio_util::sync::CancellationToken;

/// Longer than the tests wait for anything.
fn sleepy() -> Options {
    Options { poll_min_ms: 600_000, poll_max_ms: 600_000, ..relay_options() }
}

async fn insert(database: &TestDatabase, topic: &str) {
    let insert = format!("insert into outbox (aggregate_id, topic, payload) values ('a', '{topic}', '{{}}')");
    database.client().await.batch_execute(&insert).await.unwrap();
}

async fn published(database: &TestDatabase, count: i64) {
    let sql = "select count(published_at) from outbox";
    until("the rows to be published", async || (database.number(sql).await == count).then_some(())).await;
}

/// The first row is found by the first look, so that the relay sleeps before the second comes.
async fn resting(change: impl FnOnce(Setup) -> Setup) -> (TestDatabase, String, CancellationToken) {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert(&database, &topic).await;
    let shutdown = CancellationToken::new();
    let setup = change(relay_setup(&database.url, &kafka, sleepy(), Mode::Forever));
    tokio::spawn(relay::run(setup, shutdown.clone()));
    published(&database, 1).await;
    (database, topic, shutdown)
}

#[tokio::test]
async fn a_relay_is_woken_in_memory() {
    let mut wake = None;
    let (database, topic, shutdown) = resting(|setup| {
        wake = Some(setup.wake.clone());
        setup
    })
    .await;
    insert(&database, &topic).await;
    wake.unwrap().wake();
    published(&database, 2).await;
    shutdown.cancel();
}

/// From a writer's process to a publisher's: wake-up, NOTIFY, LISTEN, wake-up. The connection that listens is cut, and
/// a new one is made.
#[tokio::test]
async fn a_relay_is_woken_by_other_processes_also_after_its_connection_was_cut() {
    let (database, topic, shutdown) = resting(|mut setup| {
        setup.source.listen = true;
        setup
    })
    .await;
    let writer = relay::Wake::default();
    tokio::spawn(outbox::notify(database.pool().await, writer.clone(), shutdown.clone()));
    let listening = "select count(*) from pg_stat_activity
                      where datname = current_database() and query = 'listen brew_outbox'";
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                where datname = current_database() and query = 'listen brew_outbox'";
    for count in 2..4 {
        until("the relay to listen", async || (database.number(listening).await == 1).then_some(())).await;
        insert(&database, &topic).await;
        // The writer's task may not have begun when it is told first.
        until("the row to be published", async || {
            writer.wake();
            let published = database.number("select count(published_at) from outbox").await;
            (published == count).then_some(())
        })
        .await;
        assert_eq!(database.number(cut).await, 1);
    }
    shutdown.cancel();
}
