//! The publisher as a process: its crash, several sources, its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;
mod crash_points;
mod lanes;

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;
use testkit::{Service, TestDatabase, history, run_to_end};

use common::PROGRAM;

async fn filled(source: &str, topic: &str, rows: u32) -> TestDatabase {
    let database = testkit::database(outbox::migrations(source)).await;
    fill(&database, topic, rows).await;
    database
}

async fn fill(database: &TestDatabase, topic: &str, rows: u32) {
    let fill = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select 'order-' || n % 10, '{topic}', '{{}}' from generate_series(1, {rows}) n"
    );
    database.client().await.batch_execute(&fill).await.unwrap();
}

async fn pending(database: &TestDatabase) -> i64 {
    database.number("select count(*) from outbox where published_at is null").await
}

#[tokio::test]
async fn a_crash_between_produce_and_mark_repeats_the_batch_and_loses_nothing() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = filled("shop", &topic, 40).await;
    let mut settings =
        vec![("BREW__SOURCES__SHOP__URL", database.url.as_str()), ("BREW__KAFKA__BROKERS", &kafka.brokers)];
    settings.push(("BREW_FAULT_INJECTION", "after-ack-before-mark"));
    let arguments = ["--exit-when-drained", "--print-records", "--batch-size", "10"];
    let crash = run_to_end(PROGRAM, &arguments, &settings).await;
    assert_eq!(crash.status.signal(), Some(Signal::SIGABRT as i32));
    let said = String::from_utf8(crash.stdout).unwrap();
    assert_eq!(said.lines().filter(|line| line.starts_with("PUB outbox_id=")).count(), 10);
    assert!(said.lines().last().unwrap().starts_with("CRASH after-ack-before-mark"));
    assert_eq!(pending(&database).await, 40);

    settings.pop();
    let run = run_to_end(PROGRAM, &arguments, &settings).await;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8(run.stdout).unwrap().lines().count(), 40);
    assert_eq!(pending(&database).await, 0);
    let history = history(&testkit::read(&topic).await);
    assert_eq!((history.ids.len(), history.repeats), (40, 10));
    assert_eq!(history.out_of_order(), [""; 0]);
}

/// Killed at any moment, again and again, two at a time: nothing is lost and nothing overtaken.
#[tokio::test]
async fn killed_at_random_again_and_again_it_loses_nothing() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = filled("shop", &topic, 3000).await;
    let settings =
        [("BREW__SOURCES__SHOP__URL", database.url.as_str()), ("BREW__KAFKA__BROKERS", &kafka.brokers)];
    let arguments = ["--batch-size", "40"];
    let mut kills = 0;
    while pending(&database).await > 500 {
        let (one, two) =
            (Service::start(PROGRAM, &arguments, &settings), Service::start(PROGRAM, &arguments, &settings));
        let before = pending(&database).await;
        testkit::until("some progress", async || (pending(&database).await < before - 200).then_some(()))
            .await;
        for service in [one, two] {
            service.signal(Signal::SIGKILL);
            assert!(!service.ended().await.success());
            kills += 1;
        }
    }
    assert!(kills >= 4, "only {kills} kills");
    let run = run_to_end(PROGRAM, &["--exit-when-drained"], &settings).await;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let history = history(&testkit::read(&topic).await);
    assert_eq!(history.ids.len(), 3000);
    assert_eq!(history.out_of_order(), [""; 0]);
}

#[tokio::test]
async fn one_process_publishes_several_outboxes() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let (shop, kiosk) = (filled("shop", &topic, 20).await, filled("kiosk", &topic, 30).await);
    let settings = [
        ("BREW__SOURCES__SHOP__URL", shop.url.as_str()),
        ("BREW__SOURCES__KIOSK__URL", kiosk.url.as_str()),
        ("BREW__SOURCES__KIOSK__WORKERS", "3"),
        ("BREW__KAFKA__BROKERS", &kafka.brokers),
    ];
    let run = run_to_end(PROGRAM, &["--exit-when-drained"], &settings).await;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let records = testkit::read(&topic).await;
    let of = |source| {
        records.iter().filter(|record| record.header(events::header::OUTBOX_SOURCE) == Some(source)).count()
    };
    assert_eq!((of("shop"), of("kiosk"), records.len()), (20, 30, 50));
}

#[tokio::test]
async fn sigterm_drains_so_that_nothing_repeats() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = filled("shop", &topic, 5000).await;
    let settings =
        [("BREW__SOURCES__SHOP__URL", database.url.as_str()), ("BREW__KAFKA__BROKERS", &kafka.brokers)];
    let service = Service::start(PROGRAM, &["--batch-size", "50"], &settings);
    testkit::until("some progress", async || (pending(&database).await < 4500).then_some(())).await;
    service.signal(Signal::SIGTERM);
    assert!(service.ended().await.success());
    let marked = database.number("select count(published_at) from outbox").await;
    let history = history(&testkit::read(&topic).await);
    assert_eq!((history.ids.len() as i64, history.repeats), (marked, 0));
}

#[tokio::test]
async fn settings_that_make_no_sense_stop_the_start() {
    let database = "postgres://localhost/x";
    let cases: [(&str, &[(&str, &str)]); 5] = [
        ("sources.<name>.url", &[]),
        ("sources.shop.url", &[("BREW__SOURCES__SHOP__WORKERS", "1")]),
        ("`relay.poll_maxms`", &[("BREW__RELAY__POLL_MAXMS", "50")]),
        ("keepalive_ms", &[("BREW__SOURCES__SHOP__URL", database), ("BREW__RELAY__KEEPALIVE_MS", "10")]),
        ("drain_grace_ms", &[("BREW__SOURCES__SHOP__URL", database), ("BREW__DRAIN_GRACE_MS", "6000")]),
    ];
    for (named, settings) in cases {
        let run = run_to_end(PROGRAM, &[], settings).await;
        assert!(!run.status.success());
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(said.contains(named), "{named} not in {said}");
    }
}

/// For a writer in any language: an empty database, `migrate`, an INSERT, and it is published under the name given.
#[tokio::test]
async fn the_outbox_can_be_made_in_an_empty_database() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(Vec::new()).await;
    let settings =
        [("BREW__SOURCES__SHOP__URL", database.url.as_str()), ("BREW__KAFKA__BROKERS", &kafka.brokers)];
    for _ in 0..2 {
        let made = run_to_end(PROGRAM, &["migrate", "--name", "kiosk"], &settings).await;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let insert = format!("insert into outbox (aggregate_id, topic, payload) values ('a', '{topic}', '{{}}')");
    database.client().await.batch_execute(&insert).await.unwrap();
    let run = run_to_end(PROGRAM, &["--exit-when-drained"], &settings).await;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let records = testkit::read(&topic).await;
    assert_eq!(records[0].header(events::header::OUTBOX_SOURCE), Some("kiosk"));
}

#[tokio::test]
async fn rows_move_to_partitions_of_their_days_while_they_are_published() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    database.drop_days().await;
    fill(&database, &topic, 300).await;
    let settings =
        [("BREW__SOURCES__SHOP__URL", database.url.as_str()), ("BREW__KAFKA__BROKERS", &kafka.brokers)];
    let service = Service::start(PROGRAM, &["--batch-size", "10"], &settings);
    testkit::until("all is published, by day", async || {
        let in_default = database.number("select count(*) from outbox_default").await;
        (in_default == 0 && pending(&database).await == 0).then_some(())
    })
    .await;
    service.signal(Signal::SIGTERM);
    assert!(service.ended().await.success());
    let history = history(&testkit::read(&topic).await);
    assert_eq!((history.ids.len(), history.repeats), (300, 0));
    assert_eq!(history.out_of_order(), [""; 0]);
}
