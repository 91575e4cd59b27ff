//! What can come between a lane and its keeper.

use std::time::Duration;

use messaging::{Producer, admin};
use nix::sys::signal::Signal;

use crate::common::{Stage, end};

const TIMES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(25));

async fn source(stage: &Stage) -> String {
    stage.database.client().await.query_one("select outbox_source_name()", &[]).await.unwrap().get(0)
}

/// A publisher that is frozen in the middle of a transaction, and thawed when another has done its work.
#[tokio::test]
async fn a_frozen_keeper_that_wakes_up_writes_nothing_more() {
    let stage = Stage::exactly_once(testkit::kafka()).await;
    stage.append(4000, 50).await;
    let frozen = stage.publisher(&[]);
    let begun = async || (stage.pending().await < 3900).then_some(());
    testkit::until("some to be published", begun).await;
    frozen.signal(Signal::SIGSTOP);
    // As the server does by itself after `idle_in_transaction_timeout_ms`.
    let sessions = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                     where datname = current_database() and application_name = 'brew-relay'";
    assert!(stage.number(sessions).await > 0);
    stage.drain().await;
    frozen.signal(Signal::SIGCONT);
    stage.append(400, 50).await;
    stage.until_published().await;
    end(frozen).await;
    assert_eq!(stage.sound().await.repeats, 0);
}

/// Somebody else takes the lanes' ids, again and again: the keeper's transaction fails, and it takes them back.
#[tokio::test]
async fn a_keeper_that_is_fenced_begins_again() {
    let stage = Stage::exactly_once(testkit::kafka()).await;
    stage.append(4000, 50).await;
    let publisher = stage.publisher(&[]);
    let source = source(&stage).await;
    for round in 0..3 {
        let left = 3900 - 800 * round;
        let moved = async || (stage.pending().await < left).then_some(());
        testkit::until("some to be published", moved).await;
        for lane in 0..4 {
            let id = format!("brew-relay-{source}-{lane}");
            let other =
                Producer::connect_transactional(&stage.kafka, "somebody-else", &id, TIMES).await.unwrap();
            other.retire().await;
        }
    }
    stage.until_published().await;
    end(publisher).await;
    assert_eq!(stage.sound().await.repeats, 0);
}

/// Without the progress nobody knows what was sent: it is sent again, and nothing is lost.
#[tokio::test]
async fn progress_that_is_lost_makes_repeats_and_loses_nothing() {
    let stage = Stage::exactly_once(testkit::kafka()).await;
    stage.append(400, 50).await;
    let dead = stage.publisher(&[("FAILPOINTS", "relay-all-acked=return")]).ended().await;
    assert!(!dead.success());
    assert_eq!(stage.pending().await, 400, "nothing was marked");
    let source = source(&stage).await;
    let progress = events::topic::progress(&source);
    admin::delete(&stage.kafka, &[&progress], TIMES.0).await.unwrap();
    let gone = async || {
        let there = admin::topics(&stage.kafka, TIMES.0).await.unwrap();
        (!there.contains_key(&progress)).then_some(())
    };
    testkit::until("the topic to be gone", gone).await;
    testkit::progress_topic(&stage.kafka, &source).await;
    stage.drain().await;
    assert!(stage.sound().await.repeats > 0);
}

/// So many rows that their ids are too large for one record go in several batches; none of them is to blame.
#[tokio::test]
async fn a_batch_whose_ids_are_too_large_a_record_is_halved() {
    let stage = Stage::exactly_once(testkit::kafka()).await;
    stage.append(6000, 50).await;
    stage.drain_with(&[("BREW__KAFKA__MAX_MESSAGE_BYTES", "3000")]).await;
    assert_eq!(stage.sound().await.repeats, 0);
}
