//! The binary: its crash, its output, its settings.

use std::os::unix::process::ExitStatusExt;

use inventory_service::migrations;
use testkit::run_to_end;

use crate::shelf::{Shelf, order};

const PROGRAM: &str = env!("CARGO_BIN_EXE_inventory-service");

/// Killed between its commit and its offset commit: everything is delivered again, and takes effect once.
#[tokio::test]
async fn a_consumer_killed_between_commit_and_offset_repeats_no_effect() {
    let shelf = Shelf::new().await;
    let orders: Vec<_> = (1..=30).map(|n| order(n, &[("latte", 1)])).collect();
    shelf.send(&orders).await;
    let before = shelf.available("latte").await;
    let brokers = testkit::kafka().brokers;
    let group = format!("{}-a", shelf.topic);
    let mut settings = vec![
        ("BREW__DATABASE__URL", shelf.database.url.as_str()),
        ("BREW__GRPC__ADDRESS", "127.0.0.1:0"),
        ("BREW__KAFKA__BROKERS", brokers.as_str()),
        ("BREW__CONSUMER__GROUP", group.as_str()),
        ("BREW__CONSUMER__TOPICS", shelf.topic.as_str()),
    ];
    settings.push(("BREW_FAULT_INJECTION", "after-commit-before-offset"));
    let crash = run_to_end(PROGRAM, &["--exit-when-idle", "--print-records"], &settings).await;
    assert_eq!(crash.status.signal(), Some(nix::sys::signal::Signal::SIGABRT as i32));
    assert!(String::from_utf8(crash.stdout).unwrap().starts_with("CRASH "));
    let applied = shelf.database.number("select count(*) from processed_outbox_ids").await;
    assert!(applied > 0, "it died too early to prove anything");

    settings.pop();
    let run = run_to_end(PROGRAM, &["--exit-when-idle", "--print-records"], &settings).await;
    let said = String::from_utf8(run.stdout).unwrap();
    let sums = format!("processed=30 inserted={} skipped={applied}", 30 - applied);
    assert_eq!(said.lines().last(), Some(sums.as_str()));
    assert_eq!(said.lines().filter(|line| line.starts_with("DUP ")).count() as i64, applied);
    assert_eq!(shelf.available("latte").await, before - 30);
    assert_eq!(shelf.effects().await, (30, 30, 30));
}

#[tokio::test]
async fn it_is_ready_while_its_database_is_there() {
    let shelf = Shelf::new().await;
    let brokers = testkit::kafka().brokers;
    let settings = [
        ("BREW__GRPC__ADDRESS", "127.0.0.1:0"),
        ("BREW__KAFKA__BROKERS", &brokers),
        ("BREW__CONSUMER__GROUP", &shelf.topic),
        ("BREW__CONSUMER__TOPICS", &shelf.topic),
    ];
    testkit::ready_while_the_database_is_there(PROGRAM, &shelf.database, &settings).await;
}

#[tokio::test]
async fn misspelt_settings_and_unknown_crash_points_stop_the_start() {
    let typo = run_to_end(PROGRAM, &[], &[("BREW__CONSUMER__GRUOP", "x")]).await;
    assert!(!typo.status.success());
    assert!(String::from_utf8(typo.stderr).unwrap().contains("`consumer.gruop`"));
    let fault = run_to_end(PROGRAM, &[], &[("BREW_FAULT_INJECTION", "sometimes")]).await;
    assert!(!fault.status.success());
    assert!(String::from_utf8(fault.stderr).unwrap().contains("sometimes"));
}

#[tokio::test]
async fn migrations_go_down_and_up_again() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    database::revert(&pool, migrations()).await.unwrap();
    database::migrate(&pool, migrations()).await.unwrap();
    assert_eq!(database.number("select count(*) from stock").await, 8);
}
