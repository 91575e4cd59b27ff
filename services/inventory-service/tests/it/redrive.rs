//! Dead letters redriven: an event that was given up takes effect once, however often it is put back, and in its place.

use std::{collections::BTreeSet, time::Duration};

use events::{CancelReason, Event, OrderCancelled, OrderConfirmed, OrderId, header, topic::dead_letter};
use messaging::{Letter, dead_letters, redrive};

use crate::shelf::{CONSUMER, Order, Shelf, Sums, order};

const TIMEOUT: Duration = Duration::from_secs(30);

impl Shelf {
    /// From now on order 13 cannot be stored.
    async fn refuse_13(&self) {
        let sql = "alter table reservations add constraint not_13 check (order_id <> 'order-13')";
        self.database.client().await.batch_execute(sql).await.unwrap();
    }

    async fn allow_13(&self) {
        let sql = "alter table reservations drop constraint not_13";
        self.database.client().await.batch_execute(sql).await.unwrap();
    }

    /// Consumes to the end of the topic; aggregates wait behind their dead letters.
    async fn consume_in_order(&self) -> Sums {
        let mut settings = self.settings("a");
        settings.consumer.dead_letter_aggregates_wait = true;
        self.consume_with(settings).await
    }

    async fn letters(&self) -> Vec<Letter> {
        let topic = dead_letter(&self.topic, CONSUMER);
        dead_letters(&testkit::kafka(), &topic, &BTreeSet::new(), TIMEOUT).await.unwrap()
    }

    async fn waiting(&self) -> i64 {
        self.database.number("select count(*) from dead_letter_waits").await
    }

    async fn answers(&self) -> Vec<String> {
        let client = self.database.client().await;
        let sql = "select event_type from outbox where aggregate_id = 'order-13' order by id";
        client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

async fn put_back(letters: &[&Letter]) {
    let outcome = redrive(&testkit::kafka(), letters, TIMEOUT).await.unwrap();
    assert_eq!(outcome.acks.iter().flatten().count(), letters.len(), "{outcome:?}");
}

fn later(outbox_id: i64, event: &Event) -> Order {
    Order { payload: serde_json::to_vec(event).unwrap(), ..order(13, &[]) }
        .with(header::OUTBOX_ID, &outbox_id.to_string())
        .with(header::EVENT_TYPE, event.event_type())
}

fn confirmed() -> Order {
    let (order_id, currency) = (OrderId(13), "EUR".to_owned());
    later(14, &Event::OrderConfirmed(OrderConfirmed { order_id, version: 2, total_minor: 100, currency }))
}

fn cancelled() -> Order {
    let (order_id, reason) = (OrderId(13), CancelReason::Requested);
    later(15, &Event::OrderCancelled(OrderCancelled { order_id, version: 3, reason }))
}

#[tokio::test]
async fn twice_redriven_is_one_effect() {
    let shelf = Shelf::new().await;
    shelf.refuse_13().await;
    let orders: Vec<_> = (1..=20).map(|n| order(n, &[("latte", 1)])).collect();
    shelf.send(&orders).await;
    let before = shelf.available("latte").await;
    assert_eq!(shelf.consume("a").await, (19, 0, 1));
    shelf.allow_13().await;

    let letters = shelf.letters().await;
    assert_eq!(letters.len(), 1);
    put_back(&[&letters[0]]).await;
    // As after a crash before it was written down that it was put back; the second finds the event applied.
    put_back(&[&letters[0]]).await;
    assert_eq!(shelf.consume("a").await, (1, 1, 0));
    assert_eq!(shelf.effects().await, (20, 20, 20));
    assert_eq!(shelf.available("latte").await, before - 20);
    // The answer stands in the trace of the original.
    let trace =
        "select count(*) from outbox where aggregate_id = 'order-13' and headers->>'traceparent' is not null";
    assert_eq!(shelf.database.number(trace).await, 1);
}

#[tokio::test]
async fn an_aggregate_waits_behind_its_dead_letter_and_keeps_its_order() {
    let shelf = Shelf::new().await;
    shelf.refuse_13().await;
    shelf.send(&[order(13, &[("latte", 1)]), confirmed(), order(16, &[("latte", 1)])]).await;
    // The other order flows.
    assert_eq!(shelf.consume_in_order().await, (1, 0, 2));
    let letters = shelf.letters().await;
    let reasons: Vec<&str> = letters.iter().map(|letter| letter.reason.as_str()).collect();
    assert!(reasons[0].contains("not_13"), "{reasons:?}");
    assert_eq!(reasons[1], format!("waits behind outbox-id 13, {}", letters[0].origin));

    // Redriven too early: both are dead letters again, and still wait in their order.
    put_back(&letters.iter().collect::<Vec<_>>()).await;
    assert_eq!(shelf.consume_in_order().await, (0, 0, 2));
    assert_eq!((shelf.waiting().await, shelf.letters().await.len()), (2, 2));

    // A newer record arrives in the middle of the redrive.
    shelf.allow_13().await;
    let letters = shelf.letters().await;
    put_back(&[&letters[0]]).await;
    shelf.send(&[cancelled(), order(17, &[("latte", 1)])]).await;
    put_back(&[&letters[1]]).await;
    assert_eq!(shelf.consume_in_order().await, (3, 0, 1));
    assert_eq!(shelf.answers().await, ["stock.reserved", "stock.committed"]);

    let last = shelf.letters().await.pop().unwrap();
    assert_eq!(last.received.header(header::EVENT_TYPE), Some("order.cancelled"));
    put_back(&[&last]).await;
    assert_eq!(shelf.consume_in_order().await, (1, 0, 0));
    assert_eq!(shelf.answers().await, ["stock.reserved", "stock.committed", "stock.released"]);
    assert_eq!(shelf.waiting().await, 0);
}

/// What is unreadable holds its aggregate up too, as far as its key names one.
#[tokio::test]
async fn an_aggregate_waits_behind_what_cannot_be_read() {
    let shelf = Shelf::new().await;
    let unreadable = Order { payload: b"{".to_vec(), ..order(13, &[]) };
    let before = order(13, &[("latte", 1)]);
    // In one batch: what comes before the unreadable one does not wait for it.
    shelf.send(&[before, unreadable, cancelled()]).await;
    assert_eq!(shelf.consume_in_order().await, (1, 0, 2));
    assert_eq!(shelf.answers().await, ["stock.reserved"]);
    assert_eq!(shelf.waiting().await, 2);
    assert_eq!(shelf.letters().await.len(), 2);
}
