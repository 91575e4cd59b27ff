//! What every driver of the relay must do, whatever its way; and relays that are wrong on purpose, which must fail. A
//! new driver is a line in [`Driver`] and a test here.

mod driver;
mod scenarios;
mod stage;
mod wrong;

use driver::Driver;
use scenarios::{
    a_late_commit_is_not_skipped, a_newer_event_waits_for_an_older_one, a_refused_record_is_not_lost,
    a_shutdown_leaves_no_repeats, replicas_keep_order, sessions_that_are_ended_are_made_again,
};
use wrong::Wrong;

/// A scenario says what is wrong, or nothing. One after the other: each makes a database.
async fn conforms(driver: Driver) {
    for restarted in [false, true] {
        assert_eq!(a_late_commit_is_not_skipped(driver, restarted).await, Ok(()), "{driver:?} {restarted}");
    }
    assert_eq!(a_newer_event_waits_for_an_older_one(driver).await, Ok(()), "{driver:?}");
    assert_eq!(a_refused_record_is_not_lost(driver).await, Ok(()), "{driver:?}");
    assert_eq!(a_shutdown_leaves_no_repeats(driver).await, Ok(()), "{driver:?}");
    assert_eq!(sessions_that_are_ended_are_made_again(driver).await, Ok(()), "{driver:?}");
    for replicas in [2, 4] {
        assert_eq!(replicas_keep_order(driver, replicas).await, Ok(()), "{driver:?}, {replicas} replicas");
    }
}

#[tokio::test]
async fn polling_conforms() {
    conforms(Driver::Polling).await;
}

/// No repeats either, whatever the scenario.
#[tokio::test]
async fn exactly_once_conforms() {
    conforms(Driver::ExactlyOnce).await;
}

#[tokio::test]
async fn in_process_conforms() {
    conforms(Driver::InProcess).await;
}

#[tokio::test]
async fn a_relay_that_marks_before_the_ack_fails() {
    let found = a_refused_record_is_not_lost(Driver::Wrong(Wrong::MarksBeforeAck)).await;
    assert!(found.clone().unwrap_err().contains("lost"), "{found:?}");
}

#[tokio::test]
async fn a_relay_with_a_cursor_by_id_fails() {
    let found = a_late_commit_is_not_skipped(Driver::Wrong(Wrong::CursorById), false).await;
    assert!(found.clone().unwrap_err().contains("lost"), "{found:?}");
}

#[tokio::test]
async fn a_relay_that_locks_rows_fails() {
    let found = replicas_keep_order(Driver::Wrong(Wrong::LocksRows), 2).await;
    assert!(found.clone().unwrap_err().contains("out of order"), "{found:?}");
}

#[tokio::test]
async fn a_relay_that_locks_and_reads_in_one_statement_fails() {
    let found = replicas_keep_order(Driver::Wrong(Wrong::LocksAndReadsAtOnce), 2).await;
    assert!(found.clone().unwrap_err().contains("repeats"), "{found:?}");
}
