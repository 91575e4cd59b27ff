//! An outbox id is not an event.

use events::header;

use crate::shelf::{Shelf, order};

#[tokio::test]
async fn two_sources_with_the_same_outbox_ids_both_take_effect() {
    let shelf = Shelf::new().await;
    let web: Vec<_> = (1..=20).map(|n| order(n, &[("latte", 1)])).collect();
    let kiosk: Vec<_> = (1..=20)
        .map(|n| {
            order(1000 + n, &[("latte", 1)])
                .with(header::OUTBOX_SOURCE, "kiosk-service")
                .with(header::OUTBOX_ID, &n.to_string())
        })
        .collect();
    shelf.send(&web).await;
    shelf.send(&kiosk).await;
    assert_eq!(shelf.consume("a").await, (40, 0, 0));
    assert_eq!(shelf.effects().await, (40, 40, 40));
}

/// A database restored from a backup hands out ids again that its outbox had used before, to new events.
#[tokio::test]
async fn a_restored_database_that_reuses_outbox_ids_loses_nothing() {
    let shelf = Shelf::new().await;
    let before: Vec<_> = (1..=20).map(|n| order(n, &[("latte", 1)])).collect();
    shelf.send(&before).await;
    assert_eq!(shelf.consume("a").await, (20, 0, 0));
    let after: Vec<_> =
        (11..=30).map(|n| order(1000 + n, &[("latte", 1)]).with(header::OUTBOX_ID, &n.to_string())).collect();
    shelf.send(&after).await;
    assert_eq!(shelf.consume("a").await, (20, 0, 0));
    assert_eq!(shelf.effects().await, (40, 40, 40));
}

/// The second line of defence: another event about an order that is decided reserves nothing again.
#[tokio::test]
async fn one_reservation_an_order_whatever_the_event_ids() {
    let shelf = Shelf::new().await;
    shelf.send(&[order(1, &[("latte", 1)]), order(1, &[("latte", 1)])]).await;
    let before = shelf.available("latte").await;
    assert_eq!(shelf.consume("a").await.0, 2);
    assert_eq!(shelf.available("latte").await, before - 1);
    assert_eq!(shelf.effects().await, (1, 1, 1));
}
