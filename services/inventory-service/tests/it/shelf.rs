//! An inventory with its database and topic, and orders to feed it.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use events::{Event, OrderCreated, OrderId, OrderLine, Sku, header};
use inventory_service::{Options, migrations, serve, settings};
use messaging::{Producer, Record, Tally};
use testkit::TestDatabase;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) const CONSUMER: &str = "inventory-service";

pub(crate) struct Shelf {
    pub(crate) database: TestDatabase,
    pub(crate) topic: String,
}

/// Inserted, skipped, dead letters.
pub(crate) type Sums = (u64, u64, u64);

impl Shelf {
    pub(crate) async fn new() -> Self {
        let database = testkit::database(migrations()).await;
        let topic = testkit::topic(&testkit::kafka(), Some(CONSUMER)).await;
        Self { database, topic }
    }

    pub(crate) fn settings(&self, group: &str) -> settings::Settings {
        let mut settings = settings::load(None).unwrap();
        settings.database = self.database.options();
        settings.kafka = testkit::kafka();
        settings.admin.address = "127.0.0.1:0".parse().unwrap();
        settings.grpc.address = "127.0.0.1:0".parse().unwrap();
        settings.consumer.group = format!("{}-{group}", self.topic);
        settings.consumer.topics = vec![self.topic.clone()];
        settings
    }

    /// Consumes to the end of the topic, as a member of `group`.
    pub(crate) async fn consume(&self, group: &str) -> Sums {
        self.consume_with(self.settings(group)).await
    }

    pub(crate) async fn consume_with(&self, settings: settings::Settings) -> Sums {
        let tally = Arc::new(Tally::default());
        let options = Options { exit_when_idle: true, print_records: false };
        let shutdown = CancellationToken::new();
        serve(settings, options, Arc::clone(&tally), shutdown).await.unwrap();
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Relaxed);
        (count(&tally.inserted), count(&tally.skipped), count(&tally.dead_letters))
    }

    pub(crate) async fn send(&self, records: &[Order]) {
        let kafka = testkit::kafka();
        let mut producer = Producer::connect(&kafka, "test", Duration::from_secs(20)).await.unwrap();
        let batch: Vec<Record<'_>> = records.iter().map(|order| order.record(&self.topic)).collect();
        let outcome = producer.send(&batch, Instant::now() + Duration::from_secs(20)).await;
        assert_eq!(outcome.acks.iter().flatten().count(), records.len(), "{outcome:?}");
    }

    pub(crate) async fn available(&self, sku: &str) -> i64 {
        self.database.number(&format!("select available from stock where sku = '{sku}'")).await
    }

    /// Reservations, reserved among them, outbox rows.
    pub(crate) async fn effects(&self) -> (i64, i64, i64) {
        (
            self.database.number("select count(*) from reservations").await,
            self.database.number("select count(*) from reservations where status = 'reserved'").await,
            self.database.number("select count(*) from outbox").await,
        )
    }
}

/// An `order.created` as order-service's relay would send it.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) headers: BTreeMap<&'static str, String>,
}

pub(crate) fn order(number: i64, lines: &[(&str, i32)]) -> Order {
    let order_id = OrderId(number);
    let lines = lines.iter().map(|(sku, quantity)| OrderLine {
        sku: Sku((*sku).to_owned()),
        quantity: *quantity,
        unit_price_minor: 100,
    });
    let created = OrderCreated {
        order_id,
        version: 1,
        lines: lines.collect(),
        total_minor: 100,
        currency: "EUR".to_owned(),
        payment_token: String::new(),
    };
    Order {
        key: order_id.to_string(),
        payload: serde_json::to_vec(&Event::OrderCreated(created)).unwrap(),
        headers: BTreeMap::from([
            (header::OUTBOX_ID, number.to_string()),
            (header::AGGREGATE_ID, order_id.to_string()),
            (header::OUTBOX_SOURCE, "order-service".to_owned()),
            (header::EVENT_ID, Uuid::new_v4().to_string()),
            (header::EVENT_TYPE, "order.created".to_owned()),
            (header::TRACEPARENT, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ]),
    }
}

impl Order {
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.to_owned());
        self
    }

    fn record<'a>(&'a self, topic: &'a str) -> Record<'a> {
        let headers = self.headers.iter().map(|(name, value)| (*name, value.as_bytes().into()));
        Record { topic, key: self.key.as_bytes(), payload: &self.payload, headers: headers.collect() }
    }
}
