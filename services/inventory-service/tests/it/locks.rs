//! Rows locked in one order: batches never wait in a circle; and if somebody else makes one, the batch is repeated.

use std::{collections::BTreeMap, time::Duration};

use events::{
    CancelReason, Envelope, Event, EventId, OrderCancelled, OrderCreated, OrderId, OrderLine, OutboxId, Sku,
};
use inbox::{Accepted, Arrival};
use inventory_service::app::apply_orders;
use sea_orm::DatabaseConnection;
use uuid::Uuid;

use crate::shelf::{CONSUMER, Shelf, order};

const ROUNDS: i64 = 100;

fn created(number: i64, skus: [&str; 2]) -> Event {
    let line = |sku: &str| OrderLine { sku: Sku(sku.to_owned()), quantity: 1, unit_price_minor: 100 };
    Event::OrderCreated(OrderCreated {
        order_id: OrderId(number),
        version: 1,
        lines: skus.map(line).to_vec(),
        total_minor: 200,
        currency: "EUR".to_owned(),
        payment_token: String::new(),
    })
}

fn cancelled(number: i64) -> Event {
    let reason = CancelReason::Requested;
    Event::OrderCancelled(OrderCancelled { order_id: OrderId(number), version: 2, reason })
}

async fn apply(pool: &DatabaseConnection, events: [Event; 2]) {
    let envelope = |event: &Event| Envelope {
        outbox_id: OutboxId(1),
        source: "order-service".to_owned(),
        event_id: EventId(Uuid::new_v4()),
        event_type: event.event_type().to_owned(),
        aggregate_id: event.order_id().to_string(),
        trace: BTreeMap::new(),
    };
    let envelopes: Vec<Envelope> = events.iter().map(envelope).collect();
    let arrived = |envelope| Arrival { envelope, first_place: None };
    let batch: Vec<(Arrival<'_>, &Event)> = envelopes.iter().map(arrived).zip(&events).collect();
    // Not through the consumer, which would repeat a batch that lost against another: here none may lose.
    let accepted = apply_orders(pool, CONSUMER, "answers", &batch).await.unwrap();
    assert!(accepted.iter().all(|one| *one == Accepted::New));
}

/// Each round, four batches at once over the same orders and skus, each in an order of its own.
#[tokio::test]
async fn batches_with_opposite_orders_never_wait_in_a_circle() {
    let shelf = Shelf::new().await;
    let pool = shelf.database.pool().await;
    let before = (shelf.available("latte").await, shelf.available("mocha").await);
    for round in 0..ROUNDS {
        let (one, two) = (round * 2 + 1, round * 2 + 2);
        tokio::join!(
            apply(&pool, [created(one, ["latte", "mocha"]), created(two, ["mocha", "latte"])]),
            apply(&pool, [created(two, ["mocha", "latte"]), created(one, ["latte", "mocha"])]),
            apply(&pool, [cancelled(two), cancelled(one)]),
            apply(&pool, [cancelled(one), cancelled(two)]),
        );
    }
    assert_eq!((shelf.available("latte").await, shelf.available("mocha").await), before);
    let released = "select count(*) from reservations where status = 'released'";
    assert_eq!(shelf.database.number(released).await, ROUNDS * 2);
}

/// A person at a prompt locks the other way round, and the database ends the consumer's transaction.
#[tokio::test]
async fn a_batch_that_the_database_ends_for_a_deadlock_is_repeated_whole() {
    let shelf = Shelf::new().await;
    let mut person = shelf.database.client().await;
    let tx = person.transaction().await.unwrap();
    // Asks after this long whether it waits in a circle; the consumer, by the default, after a second.
    tx.batch_execute("set local deadlock_timeout = '60s'").await.unwrap();
    tx.batch_execute("select from stock where sku = 'mocha' for update").await.unwrap();

    shelf.send(&[order(1, &[("latte", 1), ("mocha", 1)]), order(2, &[("latte", 1)])]).await;
    let before = shelf.available("latte").await;
    let circle = async {
        let waits = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                      where a.datname = current_database() and not l.granted";
        testkit::until("the consumer to wait for mocha", async || {
            (shelf.database.number(waits).await > 0).then_some(())
        })
        .await;
        tokio::time::timeout(
            Duration::from_secs(20),
            tx.batch_execute("select from stock where sku = 'latte' for update"),
        )
        .await
        .expect("the consumer to give way")
        .unwrap();
        tx.commit().await.unwrap();
    };
    let (sums, ()) = tokio::join!(shelf.consume("a"), circle);
    assert_eq!(sums, (2, 0, 0));
    assert_eq!(shelf.available("latte").await, before - 2);
    assert_eq!(shelf.effects().await, (2, 2, 2));
}
