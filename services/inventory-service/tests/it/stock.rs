//! Stock: all lines or none, and never below zero; an answer to each order, in its trace.

use crate::shelf::{Shelf, order};

#[tokio::test]
async fn what_is_short_is_rejected_whole() {
    let shelf = Shelf::new().await;
    let before = shelf.available("latte").await;
    let orders: Vec<_> = (1..=10).map(|n| order(n, &[("latte", 1), ("panettone", 2)])).collect();
    shelf.send(&orders).await;
    assert_eq!(shelf.consume("a").await, (10, 0, 0));
    // Five panettoni are enough for two orders.
    assert_eq!(shelf.available("panettone").await, 1);
    assert_eq!(shelf.available("latte").await, before - 2);
    assert_eq!(shelf.effects().await, (10, 2, 10));
    let lines = "select sum(quantity) from reservation_lines where sku = 'panettone'";
    assert_eq!(shelf.database.number(lines).await, 4);
}

#[tokio::test]
async fn each_order_is_answered_in_its_own_trace() {
    let shelf = Shelf::new().await;
    shelf.send(&[order(1, &[("latte", 1)]), order(2, &[("panettone", 6)]), order(3, &[("tea", 1)])]).await;
    shelf.consume("a").await;
    let answers = shelf
        .database
        .client()
        .await
        .query(
            "select event_type, topic, source, headers->>'traceparent', payload->>'order_id'
               from outbox order by aggregate_id",
            &[],
        )
        .await
        .unwrap();
    let answers: Vec<Vec<&str>> =
        answers.iter().map(|row| (0..5).map(|column| row.get(column)).collect()).collect();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answer = |what, order| vec![what, "brew.inventory.v1", "inventory-service", trace, order];
    assert_eq!(
        answers,
        [
            answer("stock.reserved", "order-1"),
            answer("stock.rejected", "order-2"),
            answer("stock.rejected", "order-3"),
        ]
    );
}
