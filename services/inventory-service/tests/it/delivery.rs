//! Delivered again: nothing happens again.

use crate::shelf::{Shelf, order};

#[tokio::test]
async fn a_replay_of_the_whole_topic_changes_nothing() {
    let shelf = Shelf::new().await;
    let orders: Vec<_> = (1..=200).map(|n| order(n, &[("latte", 2)])).collect();
    shelf.send(&orders).await;
    shelf.send(&orders[..50]).await;
    let before = shelf.available("latte").await;
    assert_eq!(shelf.consume("a").await, (200, 50, 0));
    assert_eq!(shelf.available("latte").await, before - 400);
    let effects = shelf.effects().await;
    assert_eq!(effects, (200, 200, 200));

    // Another group begins at the first record.
    assert_eq!(shelf.consume("b").await, (0, 250, 0));
    assert_eq!(shelf.available("latte").await, before - 400);
    assert_eq!(shelf.effects().await, effects);
    assert_eq!(shelf.consume("b").await, (0, 0, 0));
}

#[tokio::test]
async fn two_groups_at_once_share_the_effects_and_repeat_none() {
    let shelf = Shelf::new().await;
    let orders: Vec<_> = (1..=500).map(|n| order(n, &[("latte", 1), ("mocha", 1)])).collect();
    shelf.send(&orders).await;
    let before = shelf.available("latte").await;
    let (one, two) = tokio::join!(shelf.consume("a"), async {
        let replay = shelf.consume("b").await;
        assert_eq!(replay.2, 0);
        replay
    });
    // Two groups over the same events at the same time: between them each event takes effect once.
    assert_eq!(one.0 + two.0, 500);
    assert_eq!(one.1 + two.1, 500);
    assert_eq!(shelf.available("latte").await, before - 500);
    assert_eq!(shelf.effects().await, (500, 500, 500));
}
