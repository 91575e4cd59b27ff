//! What cannot be read goes aside, with its reason, while the next records flow.

use events::{header, topic::dead_letter};

use crate::shelf::{CONSUMER, Order, Shelf, order};

fn poison() -> Vec<(&'static str, Order)> {
    let good = || order(7, &[("latte", 1)]);
    let without = |name| {
        let mut order = good();
        order.headers.remove(name);
        order
    };
    let says = |payload: &[u8]| Order { payload: payload.to_vec(), ..good() };
    let changed = |from: &str, to: &str| {
        let text = String::from_utf8(good().payload).unwrap();
        assert!(text.contains(from), "{text}");
        says(text.replace(from, to).as_bytes())
    };
    vec![
        ("payload cannot be read", says(b"\xff\xfe")),
        ("payload cannot be read", says(b"")),
        ("payload cannot be read", says(b"{\"type\":\"order.created\"}")),
        ("unknown currency `QQQ`", changed("EUR", "QQQ")),
        ("payload cannot be read", changed("\"total_minor\":100", "\"total_minor\":9223372036854775808")),
        // A later version that means something else by the same name, or has a name that we do not know.
        ("missing field `lines`", changed("\"lines\"", "\"items\"")),
        ("unknown event type `order.created.v2`", good().with(header::EVENT_TYPE, "order.created.v2")),
        ("`outbox-id` is missing", without(header::OUTBOX_ID)),
        ("`event-id` is missing", without(header::EVENT_ID)),
        ("`outbox-source` is missing", without(header::OUTBOX_SOURCE)),
        ("`event-type` is missing", without(header::EVENT_TYPE)),
        ("`outbox-id` is not a decimal number", good().with(header::OUTBOX_ID, "seven")),
        ("`event-id` is not a UUID", good().with(header::EVENT_ID, "seven")),
        ("unknown event type `order.vanished`", good().with(header::EVENT_TYPE, "order.vanished")),
        ("the payload `order.created`", good().with(header::EVENT_TYPE, "stock.reserved")),
        ("different aggregates", Order { key: "order-8".to_owned(), ..good() }),
        ("different aggregates", good().with(header::AGGREGATE_ID, "order-8")),
    ]
}

#[tokio::test]
async fn each_kind_of_poison_is_a_dead_letter_with_its_reason() {
    let shelf = Shelf::new().await;
    let mut records = Vec::new();
    for (number, (_, bad)) in (100..).zip(poison()) {
        records.push(bad);
        records.push(order(number, &[("latte", 1)]));
    }
    let count = poison().len() as u64;
    shelf.send(&records).await;
    assert_eq!(shelf.consume("a").await, (count, 0, count));
    assert_eq!(shelf.effects().await.1, count as i64);

    let dead = testkit::read(&dead_letter(&shelf.topic, CONSUMER)).await;
    let reasons: Vec<&str> = dead.iter().filter_map(|record| record.header(header::DEAD_REASON)).collect();
    for (reason, _) in poison() {
        assert!(reasons.iter().any(|told| told.contains(reason)), "{reason} not in {reasons:?}");
    }
    assert_eq!(dead.len() as u64, count);
    // A dead letter is settled: it is not met again.
    assert_eq!(shelf.consume("a").await, (0, 0, 0));
}

/// A previous version has no payment token; a later one has fields that this one does not know.
#[tokio::test]
async fn what_an_older_or_a_newer_publisher_sends_takes_effect() {
    let shelf = Shelf::new().await;
    let changed = |number, from: &str, to: &str| {
        let good = order(number, &[("latte", 1)]);
        let text = String::from_utf8(good.payload.clone()).unwrap();
        assert!(text.contains(from), "{text}");
        Order { payload: text.replace(from, to).into_bytes(), ..good }
    };
    let older = changed(1, ",\"payment_token\":\"\"", "");
    let newer = changed(2, "\"version\":1", "\"version\":1,\"loyalty\":{\"points\":3}");
    shelf.send(&[older, newer]).await;
    assert_eq!(shelf.consume("a").await, (2, 0, 0));
    assert_eq!(shelf.effects().await, (2, 2, 2));
}

/// What can be read and cannot be stored is found by splitting the batch; its neighbours are applied.
#[tokio::test]
async fn what_the_database_refuses_is_a_dead_letter_and_its_neighbours_are_applied() {
    let shelf = Shelf::new().await;
    let client = shelf.database.client().await;
    client
        .batch_execute("alter table reservations add constraint not_13 check (order_id <> 'order-13')")
        .await
        .unwrap();
    let orders: Vec<_> = (1..=40).map(|n| order(n, &[("latte", 1)])).collect();
    shelf.send(&orders).await;
    assert_eq!(shelf.consume("a").await, (39, 0, 1));
    let dead = testkit::read(&dead_letter(&shelf.topic, CONSUMER)).await;
    assert_eq!(dead[0].key, b"order-13");
    assert!(dead[0].header(header::DEAD_REASON).unwrap().contains("not_13"));
}
