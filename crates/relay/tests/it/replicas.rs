//! Any number of publishers on one outbox.

use relay::Mode;
use testkit::{TestDatabase, history, relay_options, start_relay};
use tokio_util::sync::CancellationToken;

const EVENTS: i64 = 10_000;

async fn empty() -> TestDatabase {
    testkit::database(outbox::migrations("shop")).await
}

/// 10,000 events on 500 aggregates, interleaved.
async fn fill(database: &TestDatabase, topic: &str) {
    let fill = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select 'a-' || n * 7919 % 500, '{topic}', jsonb_build_object('n', n)
           from generate_series(1, {EVENTS}) n"
    );
    database.client().await.batch_execute(&fill).await.unwrap();
}

async fn filled(topic: &str) -> TestDatabase {
    let database = empty().await;
    fill(&database, topic).await;
    database
}

const SESSIONS: &str = "select count(*) from pg_stat_activity
                         where datname = current_database() and application_name = 'brew-relay'";
const PENDING: &str = "select count(*) from outbox where published_at is null";

/// All are there before the first event is, so that each has its share.
async fn publish_with(replicas: usize) {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = empty().await;
    let shutdown = CancellationToken::new();
    let start = || start_relay(&database.url, &kafka, relay_options(), Mode::Forever, &shutdown);
    let relays: Vec<_> = (0..replicas).map(|_| start()).collect();
    testkit::until("every replica to be there", async || {
        (database.number(SESSIONS).await == replicas as i64).then_some(())
    })
    .await;
    fill(&database, &topic).await;
    testkit::until("all to be published", async || (database.number(PENDING).await == 0).then_some(())).await;
    shutdown.cancel();
    for relay in relays {
        let report = relay.await.unwrap();
        assert!(report.published > 0, "a replica had nothing to do");
        assert_eq!(report.failed_turns, 0);
    }

    let history = history(&testkit::read(&topic).await);
    assert_eq!(history.ids.len() as i64, EVENTS, "events are missing");
    assert_eq!(history.first_seen.len(), 500);
    assert_eq!(history.out_of_order(), [""; 0]);
    assert_eq!(history.repeats, 0, "nothing failed, so nothing repeats");
    assert_eq!(database.number("select count(published_at) from outbox").await, EVENTS);
}

#[tokio::test]
async fn two_publishers_keep_order_and_lose_nothing() {
    publish_with(2).await;
}

#[tokio::test]
async fn four_publishers_keep_order_and_lose_nothing() {
    publish_with(4).await;
}

/// Their sessions are ended by the server again and again, as in a failover. Repeats are allowed, inversions are
/// not.
#[tokio::test]
async fn publishers_whose_sessions_are_ended_start_again() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = filled(&topic).await;
    let shutdown = CancellationToken::new();
    let start = || start_relay(&database.url, &kafka, relay_options(), Mode::UntilDrained, &shutdown);
    let (one, two) = (start(), start());
    let end_sessions = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                         where datname = current_database() and application_name = 'brew-relay'";
    let mut ended = 0;
    while !(one.is_finished() && two.is_finished()) && ended < 6 {
        ended += database.number(end_sessions).await;
        tokio::task::yield_now().await;
    }
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert!(one.failed_turns + two.failed_turns > 0, "no session was ended while it was used");

    let history = history(&testkit::read(&topic).await);
    assert_eq!(history.ids.len() as i64, EVENTS);
    assert_eq!(history.out_of_order(), [""; 0]);
    assert_eq!(database.number("select count(published_at) from outbox").await, EVENTS);
}

/// A drain at shutdown ends the turn that is under way: what is in Kafka is marked, so nothing repeats.
#[tokio::test]
async fn a_shutdown_in_the_middle_leaves_no_repeats() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = filled(&topic).await;
    let shutdown = CancellationToken::new();
    let relay = start_relay(&database.url, &kafka, relay_options(), Mode::Forever, &shutdown);
    testkit::until("some rows to be published", async || {
        (database.number("select count(published_at) from outbox").await > 500).then_some(())
    })
    .await;
    shutdown.cancel();
    let report = relay.await.unwrap();
    let marked = database.number("select count(published_at) from outbox").await;
    assert!(marked < EVENTS, "it was done before it was stopped");
    assert_eq!(report.published as i64, marked);
    testkit::drain(&database.url, &kafka).await;
    let history = history(&testkit::read(&topic).await);
    assert_eq!((history.ids.len() as i64, history.repeats), (EVENTS, 0));
}
