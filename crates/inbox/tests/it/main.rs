//! The inbox against a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use events::{Envelope, EventId, OutboxId};
use inbox::{accept, migrations};
use sea_orm::TransactionTrait;
use uuid::Uuid;

fn envelope(id: i64, source: &str, event: u128) -> Envelope {
    Envelope {
        outbox_id: OutboxId(id),
        source: source.to_owned(),
        event_id: EventId(Uuid::from_u128(event)),
        event_type: "order.created".to_owned(),
        aggregate_id: "order-1".to_owned(),
        trace: BTreeMap::new(),
    }
}

#[tokio::test]
async fn each_event_is_new_once_also_within_a_batch() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    let (one, two) = (envelope(2, "a", 2), envelope(1, "a", 1));
    let tx = pool.begin().await.unwrap();
    let new = accept(&tx, "c", &[&one, &two, &one]).await.unwrap();
    assert_eq!(new, [true, true, false]);
    tx.commit().await.unwrap();
    let tx = pool.begin().await.unwrap();
    let three = envelope(3, "a", 3);
    assert_eq!(accept(&tx, "c", &[&two, &three]).await.unwrap(), [false, true]);
    assert_eq!(accept(&tx, "c", &[]).await.unwrap(), [false; 0]);
}

/// Two outboxes, two lives of one outbox, two consumers: none may swallow the other.
#[tokio::test]
async fn one_outbox_id_may_be_many_events() {
    let database = testkit::database(migrations()).await;
    let tx = database.pool().await.begin().await.unwrap();
    let (first, other_source, other_life) = (envelope(1, "a", 1), envelope(1, "b", 2), envelope(1, "a", 3));
    assert_eq!(accept(&tx, "c", &[&first, &other_source, &other_life]).await.unwrap(), [true; 3]);
    assert_eq!(accept(&tx, "d", &[&first]).await.unwrap(), [true]);
}

#[tokio::test]
async fn what_is_rolled_back_is_new_again() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    for _ in 0..2 {
        let tx = pool.begin().await.unwrap();
        assert_eq!(accept(&tx, "c", &[&envelope(1, "a", 1)]).await.unwrap(), [true]);
        tx.rollback().await.unwrap();
    }
}

/// Two batches with the same events in opposite order wait for each other, never in a circle.
#[tokio::test]
async fn opposite_batches_do_not_deadlock() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    let events: Vec<Envelope> = (1..=200).map(|n| envelope(n, "a", n.unsigned_abs().into())).collect();
    let forward: Vec<&Envelope> = events.iter().collect();
    let backward: Vec<&Envelope> = events.iter().rev().collect();
    let take = async |batch: &[&Envelope]| {
        let tx = pool.begin().await.unwrap();
        let new = accept(&tx, "c", batch).await.unwrap();
        tx.commit().await.unwrap();
        new.into_iter().filter(|new| *new).count()
    };
    let (one, two) = tokio::join!(take(&forward), take(&backward));
    assert_eq!(one + two, 200);
}
