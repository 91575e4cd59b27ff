//! The inbox against a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod prune;
mod waits;

use std::collections::BTreeMap;

use events::{Envelope, EventId, OutboxId};
use inbox::{Accepted, Arrival, migrations};
use sea_orm::{DatabaseTransaction, TransactionTrait};
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

/// Whether each of `batch` is new.
async fn accept(tx: &DatabaseTransaction, consumer: &str, batch: &[&Envelope]) -> Vec<bool> {
    let arrivals: Vec<Arrival<'_>> =
        batch.iter().map(|envelope| Arrival { envelope, first_place: None }).collect();
    let accepted = inbox::accept(tx, consumer, &arrivals).await.unwrap();
    accepted.iter().map(|one| *one == Accepted::New).collect()
}

#[tokio::test]
async fn each_event_is_new_once_also_within_a_batch() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    let (one, two) = (envelope(2, "a", 2), envelope(1, "a", 1));
    let tx = pool.begin().await.unwrap();
    let new = accept(&tx, "c", &[&one, &two, &one]).await;
    assert_eq!(new, [true, true, false]);
    tx.commit().await.unwrap();
    let tx = pool.begin().await.unwrap();
    let three = envelope(3, "a", 3);
    assert_eq!(accept(&tx, "c", &[&two, &three]).await, [false, true]);
    assert_eq!(accept(&tx, "c", &[]).await, [false; 0]);
}

/// Two outboxes, two lives of one outbox, two consumers: none may swallow the other.
#[tokio::test]
async fn one_outbox_id_may_be_many_events() {
    let database = testkit::database(migrations()).await;
    let tx = database.pool().await.begin().await.unwrap();
    let (first, other_source, other_life) = (envelope(1, "a", 1), envelope(1, "b", 2), envelope(1, "a", 3));
    assert_eq!(accept(&tx, "c", &[&first, &other_source, &other_life]).await, [true; 3]);
    assert_eq!(accept(&tx, "d", &[&first]).await, [true]);
}

#[tokio::test]
async fn what_is_rolled_back_is_new_again() {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    for _ in 0..2 {
        let tx = pool.begin().await.unwrap();
        assert_eq!(accept(&tx, "c", &[&envelope(1, "a", 1)]).await, [true]);
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
        let new = accept(&tx, "c", batch).await;
        tx.commit().await.unwrap();
        new.into_iter().filter(|new| *new).count()
    };
    let (one, two) = tokio::join!(take(&forward), take(&backward));
    assert_eq!(one + two, 200);
}
