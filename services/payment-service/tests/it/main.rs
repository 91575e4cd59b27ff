//! payment-service's use cases on a real Postgres: intents written once, answers applied once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, time::Duration};

use events::{
    CancelReason, Envelope, Event, EventId, OrderCancelled, OrderConfirmed, OrderCreated, OrderId, OutboxId,
};
use inbox::{Accepted, Arrival};
use payment_service::{
    Error, app,
    domain::{Operation, Outcome, Status},
    migrations,
};
use sea_orm::DatabaseConnection;
use testkit::TestDatabase;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);
const TOPIC: &str = "payments";

struct Desk {
    database: TestDatabase,
    pool: DatabaseConnection,
}

impl Desk {
    async fn open() -> Self {
        let database = testkit::database(migrations()).await;
        let pool = database.pool().await;
        Self { database, pool }
    }

    async fn hear(&self, id: i64, event: &Event) -> Result<bool, Error> {
        let envelope = Envelope {
            outbox_id: OutboxId(id),
            source: "order-service".to_owned(),
            event_id: EventId(Uuid::from_u128(id.unsigned_abs().into())),
            event_type: event.event_type().to_owned(),
            aggregate_id: event.order_id().to_string(),
            trace: BTreeMap::from([("traceparent".to_owned(), "00-a-b-01".to_owned())]),
        };
        let arrival = Arrival { envelope: &envelope, first_place: None };
        Ok(app::apply_orders(&self.pool, "payment-service", &[(arrival, event)]).await?[0] == Accepted::New)
    }

    /// Makes the call that is due, with this answer.
    async fn answer(&self, operation: Operation, outcome: &Outcome) {
        let call = app::take_call(&self.pool, LEASE).await.unwrap().expect("a call that is due");
        assert_eq!(call.operation, operation);
        assert!(app::settle_call(&self.pool, TOPIC, &call, outcome).await.unwrap());
    }

    async fn status(&self) -> Status {
        app::get_payment(&self.pool, OrderId(1)).await.unwrap().status
    }

    async fn told(&self) -> Vec<String> {
        let rows = self.database.client().await;
        let rows = rows.query("select event_type from outbox order by id", &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

fn created(total_minor: i64) -> Event {
    let (currency, payment_token) = ("EUR".to_owned(), "tok".to_owned());
    Event::OrderCreated(OrderCreated {
        order_id: OrderId(1),
        version: 1,
        lines: vec![],
        total_minor,
        currency,
        payment_token,
    })
}

fn confirmed() -> Event {
    let currency = "EUR".to_owned();
    Event::OrderConfirmed(OrderConfirmed { order_id: OrderId(1), version: 2, total_minor: 500, currency })
}

fn cancelled() -> Event {
    let reason = CancelReason::Requested;
    Event::OrderCancelled(OrderCancelled { order_id: OrderId(1), version: 3, reason })
}

fn done() -> Outcome {
    Outcome::Done(Uuid::from_u128(7))
}

#[tokio::test]
async fn the_intent_is_written_once_and_the_answer_told_once() {
    let desk = Desk::open().await;
    assert!(desk.hear(1, &created(500)).await.unwrap());
    assert!(!desk.hear(1, &created(500)).await.unwrap(), "delivered again");
    assert!(desk.hear(2, &created(500)).await.unwrap(), "another event of the same order");
    assert_eq!(desk.database.number("select count(*) from gateway_calls").await, 1);

    let call = app::take_call(&desk.pool, LEASE).await.unwrap().unwrap();
    assert_eq!(call.idempotency_key, "authorize:order-1:1");
    assert_eq!(call.request["amount_minor"], 500);
    assert!(app::take_call(&desk.pool, LEASE).await.unwrap().is_none(), "a call has one worker");
    assert!(app::settle_call(&desk.pool, TOPIC, &call, &done()).await.unwrap());
    assert!(
        !app::settle_call(&desk.pool, TOPIC, &call, &done()).await.unwrap(),
        "another worker's late answer"
    );
    assert_eq!(desk.told().await, ["payment.authorized"]);

    desk.hear(3, &confirmed()).await.unwrap();
    desk.answer(Operation::Capture, &done()).await;
    assert_eq!(desk.told().await, ["payment.authorized", "payment.captured"]);
    assert_eq!(desk.status().await, Status::Captured);
    let traced = "select count(*) from outbox where headers->>'traceparent' = '00-a-b-01'";
    assert_eq!(desk.database.number(traced).await, 2);
}

/// A worker that dies has made its call or not: the next one makes the same call, byte for byte.
#[tokio::test]
async fn a_call_without_an_answer_is_made_again_with_the_same_key_and_bytes() {
    let desk = Desk::open().await;
    desk.hear(1, &created(500)).await.unwrap();
    let first = app::take_call(&desk.pool, Duration::ZERO).await.unwrap().unwrap();
    let second = app::take_call(&desk.pool, LEASE).await.unwrap().unwrap();
    assert_eq!((&first.idempotency_key, &first.request), (&second.idempotency_key, &second.request));
    assert_eq!((first.attempts, second.attempts), (1, 2));
    app::postpone_call(&desk.pool, &second, Duration::from_secs(60), "timed out").await.unwrap();
    assert!(app::take_call(&desk.pool, LEASE).await.unwrap().is_none(), "not before its time");
    assert_eq!(desk.status().await, Status::Authorizing);
}

#[tokio::test]
async fn a_cancel_during_the_capture_refunds() {
    let desk = Desk::open().await;
    desk.hear(1, &created(500)).await.unwrap();
    desk.answer(Operation::Authorize, &done()).await;
    desk.hear(2, &confirmed()).await.unwrap();
    desk.hear(3, &cancelled()).await.unwrap();
    desk.answer(Operation::Capture, &done()).await;
    desk.answer(Operation::Refund, &done()).await;
    assert_eq!(desk.told().await, ["payment.authorized", "payment.captured", "payment.refunded"]);
    assert_eq!(desk.status().await, Status::Refunded);
}

#[tokio::test]
async fn a_cancel_that_comes_first_calls_nobody() {
    let desk = Desk::open().await;
    desk.hear(1, &cancelled()).await.unwrap();
    desk.hear(2, &created(500)).await.unwrap();
    assert!(app::take_call(&desk.pool, LEASE).await.unwrap().is_none());
    assert_eq!(desk.status().await, Status::Cancelled);
}

/// Behind a provider that is slow: what was not asked yet is not asked, what was is undone.
#[tokio::test]
async fn a_cancel_takes_back_the_call_that_nobody_has_tried() {
    let desk = Desk::open().await;
    desk.hear(1, &created(500)).await.unwrap();
    desk.hear(2, &cancelled()).await.unwrap();
    assert!(app::take_call(&desk.pool, LEASE).await.unwrap().is_none());
    assert_eq!(desk.status().await, Status::Cancelled);
    assert!(desk.hear(3, &created(500)).await.unwrap(), "another event of the same order");
    assert!(app::take_call(&desk.pool, LEASE).await.unwrap().is_none());
    assert!(desk.told().await.is_empty());
}

#[tokio::test]
async fn a_cancel_leaves_the_call_that_was_tried_and_undoes_it() {
    let desk = Desk::open().await;
    desk.hear(1, &created(500)).await.unwrap();
    let call = app::take_call(&desk.pool, Duration::ZERO).await.unwrap().unwrap();
    app::postpone_call(&desk.pool, &call, Duration::ZERO, "timed out").await.unwrap();
    desk.hear(2, &cancelled()).await.unwrap();
    assert_eq!(desk.status().await, Status::Authorizing);
    desk.answer(Operation::Authorize, &done()).await;
    desk.answer(Operation::Void, &done()).await;
    assert_eq!(desk.told().await, ["payment.authorized", "payment.voided"]);
}

#[tokio::test]
async fn what_cannot_be_has_no_effect() {
    let desk = Desk::open().await;
    for total in [0, -500] {
        assert!(matches!(desk.hear(1, &created(total)).await, Err(Error::Impossible(_))));
    }
    assert!(matches!(desk.hear(2, &confirmed()).await, Err(Error::Impossible(_))));
    assert_eq!(desk.database.number("select count(*) from processed_outbox_ids").await, 0);
    assert_eq!(desk.database.number("select count(*) from payments").await, 0);
}

#[tokio::test]
async fn migrations_go_down_and_up_again() {
    let desk = Desk::open().await;
    database::revert(&desk.pool, migrations()).await.unwrap();
    database::migrate(&desk.pool, migrations()).await.unwrap();
    assert_eq!(desk.database.number("select count(*) from payments").await, 0);
}

#[tokio::test]
async fn it_is_ready_while_its_database_is_there() {
    let database = testkit::database(migrations()).await;
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, Some("payment-service")).await;
    let settings = [
        ("BREW__GRPC__ADDRESS", "127.0.0.1:0"),
        ("BREW__KAFKA__BROKERS", &kafka.brokers),
        ("BREW__CONSUMER__GROUP", &topic),
        ("BREW__CONSUMER__TOPICS", &topic),
    ];
    let program = env!("CARGO_BIN_EXE_payment-service");
    testkit::ready_while_the_database_is_there(program, &database, &settings).await;
}
