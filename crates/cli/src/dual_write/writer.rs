//! A writer without an outbox to be published from. It notes each event as sent, since it sends by itself.

use std::{borrow::Cow, time::Duration};

use anyhow::{Context, bail};
use events::{Event, OrderCreated, OrderId, OrderLine, Sku, header, topic};
use messaging::{Producer, Record};
use tokio::time::Instant;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::lab;

use super::Way;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Does the first of its two steps, then dies for real.
pub(super) async fn write_and_die(way: Way, database: &str, brokers: &str) -> anyhow::Result<()> {
    let mut client = lab::connect(database).await?;
    let next = "select nextval(pg_get_serial_sequence('orders', 'id')), nextval('outbox_id_seq')";
    let row = client.query_one(next, &[]).await?;
    let draft = Draft { order_id: OrderId(row.get(0)), outbox_id: row.get(1), event_id: Uuid::new_v4() };
    match way {
        Way::KafkaFirst => draft.send(brokers).await?,
        Way::DbFirst => draft.store(&mut client).await?,
    }
    std::process::abort();
}

/// An order that is to be in both places.
struct Draft {
    order_id: OrderId,
    outbox_id: i64,
    event_id: Uuid,
}

impl Draft {
    fn event(&self) -> Event {
        let line = OrderLine { sku: Sku("latte".to_owned()), quantity: 1, unit_price_minor: 420 };
        Event::OrderCreated(OrderCreated {
            order_id: self.order_id,
            version: 1,
            lines: vec![line],
            total_minor: 420,
            currency: "EUR".to_owned(),
            payment_token: "tok_good".to_owned(),
        })
    }

    async fn send(&self, brokers: &str) -> anyhow::Result<()> {
        let (event, key) = (self.event(), self.order_id.to_string());
        let payload = serde_json::to_vec(&event)?;
        let text = |value: String| Cow::Owned(value.into_bytes());
        let headers = vec![
            (header::OUTBOX_ID, text(self.outbox_id.to_string())),
            (header::AGGREGATE_ID, text(key.clone())),
            (header::OUTBOX_SOURCE, text("order-service".to_owned())),
            (header::EVENT_ID, text(self.event_id.to_string())),
            (header::EVENT_TYPE, text(event.event_type().to_owned())),
            (header::CONTENT_TYPE, text(header::JSON.to_owned())),
        ];
        let record = Record { topic: topic::ORDERS, key: key.as_bytes(), payload: &payload, headers };
        let mut producer = Producer::connect(&lab::kafka_options(brokers), "dual-write", TIMEOUT).await?;
        let outcome = producer.send(&[record], Instant::now() + TIMEOUT).await;
        if outcome.acks.iter().flatten().count() == 0 {
            bail!("Kafka did not take the event: {outcome:?}");
        }
        Ok(())
    }

    async fn store(&self, client: &mut Client) -> anyhow::Result<()> {
        let tx = client.transaction().await?;
        let order = "
            insert into orders (id, customer, status, total_minor, currency, version, idempotency_key,
                                request_fingerprint)
            overriding system value values ($1, 'dual-write', 'pending', 420, 'EUR', 1, $2, '')";
        tx.execute(order, &[&self.order_id.0, &self.event_id.to_string()]).await?;
        let line = "
            insert into order_lines (order_id, position, sku, quantity, unit_price_minor)
            values ($1, 0, 'latte', 1, 420)";
        tx.execute(line, &[&self.order_id.0]).await?;
        let event = self.event();
        let noted = "
            insert into outbox (id, aggregate_id, topic, payload, event_id, event_type, published_at)
            values ($1, $2, $3, $4, $5, $6, clock_timestamp())";
        let payload = serde_json::to_value(&event)?;
        let (aggregate, topic) = (self.order_id.to_string(), topic::ORDERS);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&self.outbox_id, &aggregate, &topic, &payload, &self.event_id, &event.event_type()];
        tx.execute(noted, &values).await.context("note the event as sent")?;
        tx.commit().await?;
        Ok(())
    }
}
