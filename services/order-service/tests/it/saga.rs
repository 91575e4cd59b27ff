//! Answers, timeouts and cancels, on a real Postgres, and over a real Kafka where the consumer matters.

use std::collections::BTreeMap;

use events::{
    Envelope, Event, EventId, OrderId, OutboxId, PaymentAuthorized, StockCommitted, header,
    topic::dead_letter,
};
use inbox::{Accepted, Arrival};
use order_service::{Error, app};
use proto::order::v1::{CancelOrderRequest, GetOrderRequest, OrderStatus};
use sea_orm::DatabaseConnection;
use testkit::TestDatabase;
use tonic::Code;
use uuid::Uuid;

use crate::{
    answers::{CONSUMER, Consuming, answer},
    shop::{Shop, order},
};

const ID: OrderId = OrderId(1);

fn reserved() -> Event {
    answer(ID, "stock.reserved")
}

fn committed() -> Event {
    answer(ID, "stock.committed")
}

fn rejected() -> Event {
    answer(ID, "stock.rejected")
}

fn authorized(amount_minor: i64) -> Event {
    let currency = "EUR".to_owned();
    Event::PaymentAuthorized(PaymentAuthorized { order_id: ID, version: 1, amount_minor, currency })
}

fn captured() -> Event {
    answer(ID, "payment.captured")
}

fn declined() -> Event {
    answer(ID, "payment.declined")
}

fn envelope(number: u128, event: &Event) -> Envelope {
    Envelope {
        outbox_id: OutboxId(i64::try_from(number).unwrap()),
        source: "other".to_owned(),
        event_id: EventId(Uuid::from_u128(number)),
        event_type: event.event_type().to_owned(),
        aggregate_id: event.order_id().to_string(),
        trace: BTreeMap::new(),
    }
}

async fn apply(pool: &DatabaseConnection, number: u128, event: &Event) -> Result<bool, Error> {
    let envelope = envelope(number, event);
    let batch = [(Arrival { envelope: &envelope, first_place: None }, event)];
    Ok(app::apply_answers(pool, "order-service", "orders", &batch).await?[0] == Accepted::New)
}

async fn told(database: &TestDatabase) -> Vec<String> {
    let client = database.client().await;
    let rows = client.query("select event_type from outbox order by id", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn status(shop: &Shop) -> (OrderStatus, String) {
    let request = GetOrderRequest { order_id: ID.to_string() };
    let order = shop.client.clone().get_order(request).await.unwrap().into_inner().order.unwrap();
    (order.status(), order.cancel_reason)
}

#[tokio::test]
async fn both_good_is_confirmed_then_completed_with_its_history() {
    let shop = Shop::open().await;
    shop.place(order(&[("latte", 1)])).await.unwrap();
    let pool = shop.database.pool().await;
    for (number, event) in [(1, authorized(420)), (2, reserved()), (3, committed()), (4, captured())] {
        assert!(apply(&pool, number, &event).await.unwrap());
        assert!(!apply(&pool, number, &event).await.unwrap(), "delivered again");
    }
    assert_eq!(status(&shop).await.0, OrderStatus::Completed);
    assert_eq!(told(&shop.database).await, ["order.created", "order.confirmed", "order.completed"]);
    let edges = "select count(*) from order_history where (version, from_status, to_status, cause) in
                     ((4, 'pending', 'confirmed', 'stock.reserved'),
                      (7, 'confirmed', 'completed', 'payment.captured'))";
    assert_eq!(shop.database.number(edges).await, 2);
}

#[tokio::test]
async fn either_bad_is_cancelled_with_its_reason() {
    for (bad, reason) in [(rejected(), "out_of_stock"), (declined(), "payment_declined")] {
        let shop = Shop::open().await;
        shop.place(order(&[("latte", 1)])).await.unwrap();
        let pool = shop.database.pool().await;
        apply(&pool, 1, &bad).await.unwrap();
        assert_eq!(status(&shop).await, (OrderStatus::Cancelled, reason.to_owned()));
        // A late good answer is normal input.
        apply(&pool, 2, &authorized(420)).await.unwrap();
        assert_eq!(told(&shop.database).await, ["order.created", "order.cancelled"]);
    }
}

#[tokio::test]
async fn overdue_orders_are_cancelled_once_by_any_number_of_sweepers() {
    let shop = Shop::open().await;
    for _ in 0..250 {
        shop.place(order(&[("latte", 1)])).await.unwrap();
    }
    let pool = shop.database.pool().await;
    assert_eq!(app::expire_orders(&pool, "orders").await.unwrap(), 0, "none is overdue yet");
    let client = shop.database.client().await;
    client.batch_execute("update orders set answer_due_at = now() - interval '1 second'").await.unwrap();
    let sweep = async || {
        let mut count = 0;
        loop {
            match app::expire_orders(&pool, "orders").await.unwrap() {
                0 => return count,
                more => count += more,
            }
        }
    };
    let (one, two, three) = tokio::join!(sweep(), sweep(), sweep());
    // A sweeper that found only locked rows may have stopped early.
    assert_eq!(one + two + three + sweep().await, 250);
    let cancelled = "select count(*) from outbox where event_type = 'order.cancelled'";
    assert_eq!(shop.database.number(cancelled).await, 250);

    // Answers after the timeout.
    apply(&pool, 1, &reserved()).await.unwrap();
    apply(&pool, 2, &authorized(420)).await.unwrap();
    assert_eq!(status(&shop).await, (OrderStatus::Cancelled, "timed_out".to_owned()));
}

#[tokio::test]
async fn a_cancel_racing_the_answers_ends_in_one_state() {
    for round in 0..10 {
        let mut shop = Shop::open().await;
        shop.place(order(&[("latte", 1)])).await.unwrap();
        let pool = shop.database.pool().await;
        apply(&pool, 1, &reserved()).await.unwrap();
        let request = CancelOrderRequest { order_id: ID.to_string() };
        let (authorized, captured, committed) = (authorized(420), captured(), committed());
        let answers = async {
            for (number, event) in [(2, &authorized), (3, &committed), (4, &captured)] {
                apply(&pool, number, event).await.unwrap();
            }
        };
        let (cancel, ()) = tokio::join!(shop.client.cancel_order(request.clone()), answers);
        let (end, _) = status(&shop).await;
        match cancel {
            Ok(_) => assert_eq!(end, OrderStatus::Cancelled, "round {round}"),
            Err(refused) => {
                assert_eq!(refused.code(), Code::FailedPrecondition);
                assert_eq!(end, OrderStatus::Completed, "round {round}");
            }
        }
        let finals = "select count(*) from outbox where event_type in ('order.cancelled', 'order.completed')";
        assert_eq!(shop.database.number(finals).await, 1);
    }
}

#[tokio::test]
async fn a_cancel_says_what_it_cannot_do() {
    let mut shop = Shop::open().await;
    let cancel = |id: &str| CancelOrderRequest { order_id: id.to_owned() };
    assert_eq!(shop.client.cancel_order(cancel("42")).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(shop.client.cancel_order(cancel("order-9")).await.unwrap_err().code(), Code::NotFound);
    shop.place(order(&[("latte", 1)])).await.unwrap();
    for _ in 0..2 {
        let order = shop.client.cancel_order(cancel("order-1")).await.unwrap().into_inner().order.unwrap();
        assert_eq!((order.status(), order.cancel_reason.as_str()), (OrderStatus::Cancelled, "requested"));
    }
    assert_eq!(told(&shop.database).await, ["order.created", "order.cancelled"]);
}

#[tokio::test]
async fn answers_that_cannot_be_have_no_effect() {
    let shop = Shop::open().await;
    shop.place(order(&[("latte", 1)])).await.unwrap();
    let pool = shop.database.pool().await;
    assert!(matches!(apply(&pool, 1, &authorized(421)).await, Err(Error::Refused(_))));
    let other = Event::StockCommitted(StockCommitted { order_id: OrderId(99), version: 1 });
    assert!(matches!(apply(&pool, 2, &other).await, Err(Error::NoOrder(_))));
    assert_eq!(shop.database.number("select count(*) from processed_outbox_ids").await, 0);
    assert_eq!(status(&shop).await.0, OrderStatus::Pending);
}

/// Over Kafka: what cannot be is a dead letter with its reason, and the answers around it take effect.
#[tokio::test]
async fn the_consumer_applies_answers_and_sets_aside_what_cannot_be() {
    let mut shop = Consuming::open().await;
    shop.client.place_order(order(&[("latte", 1)])).await.unwrap();
    let unknown = answer(OrderId(99), "stock.committed");
    let good = |event_type| answer(ID, event_type);
    let (reserved, held) = (good("stock.reserved"), good("payment.authorized"));
    let events = [reserved, authorized(1), unknown, held, good("stock.committed"), good("payment.captured")];
    shop.send(&(1..).zip(events).collect::<Vec<_>>()).await;

    testkit::until("the order to be completed", async || {
        let completed = "select count(*) from orders where status = 'completed'";
        (shop.database.number(completed).await == 1).then_some(())
    })
    .await;
    let dead = testkit::until("both dead letters", async || {
        let dead = testkit::read(&dead_letter(&shop.topic, CONSUMER)).await;
        (dead.len() == 2).then_some(dead)
    })
    .await;
    let reasons: Vec<&str> = dead.iter().filter_map(|one| one.header(header::DEAD_REASON)).collect();
    assert!(reasons.iter().any(|reason| reason.contains("payment over 1 EUR")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("there is no order `order-99`")), "{reasons:?}");
    shop.close().await;
}
