//! A running order-service that consumes, and answers of the other services for it, over a real Kafka.

use std::time::Duration;

use events::{
    Event, OrderId, PaymentAuthorized, PaymentCaptureFailed, PaymentCaptured, PaymentDeclined, PaymentVoided,
    StockCommitted, StockRejected, StockReleased, StockReserved, header,
};
use messaging::{KafkaOptions, Producer, Record};
use order_service::{Error, migrations, serve, settings};
use proto::order::v1::order_service_client::OrderServiceClient;
use testkit::TestDatabase;
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use uuid::Uuid;

pub(crate) const CONSUMER: &str = "order-service";

pub(crate) struct Consuming {
    pub(crate) database: TestDatabase,
    pub(crate) topic: String,
    pub(crate) client: OrderServiceClient<Channel>,
    kafka: KafkaOptions,
    shutdown: CancellationToken,
    running: JoinHandle<Result<(), Error>>,
}

impl Consuming {
    pub(crate) async fn open() -> Self {
        let database = testkit::database(migrations()).await;
        let kafka = testkit::kafka();
        let topic = testkit::topic(&kafka, Some(CONSUMER)).await;
        let mut settings = settings::load(None).unwrap();
        settings.database = database.options();
        settings.kafka = kafka.clone();
        settings.admin.address = "127.0.0.1:0".parse().unwrap();
        settings.consumer.topics = vec![topic.clone()];
        settings.consumer.group = format!("{topic}-group");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(serve(settings, listener, shutdown.clone()));
        let client = OrderServiceClient::connect(address).await.unwrap();
        Self { database, topic, client, kafka, shutdown, running }
    }

    /// Sends `events` in this order, each under its number.
    pub(crate) async fn send(&self, events: &[(u128, Event)]) {
        let parts: Vec<[Vec<u8>; 4]> = events
            .iter()
            .map(|(number, event)| {
                let id = Uuid::from_u128(*number).to_string().into_bytes();
                let (key, payload) = (event.order_id().to_string(), serde_json::to_vec(event).unwrap());
                [key.into_bytes(), payload, number.to_string().into_bytes(), id]
            })
            .collect();
        let records = parts.iter().zip(events).map(|([key, payload, number, id], (_, event))| Record {
            topic: &self.topic,
            key,
            payload,
            headers: vec![
                (header::OUTBOX_ID, number.into()),
                (header::OUTBOX_SOURCE, b"other".as_slice().into()),
                (header::EVENT_ID, id.into()),
                (header::EVENT_TYPE, event.event_type().as_bytes().into()),
                (header::AGGREGATE_ID, key.into()),
            ],
        });
        let records: Vec<Record<'_>> = records.collect();
        let mut producer = Producer::connect(&self.kafka, "test", Duration::from_secs(20)).await.unwrap();
        let sent = producer.send(&records, Instant::now() + Duration::from_secs(20)).await;
        assert_eq!(sent.acks.iter().flatten().count(), events.len());
    }

    pub(crate) async fn close(self) {
        self.shutdown.cancel();
        self.running.await.unwrap().unwrap();
    }
}

/// An answer about an order over 4.20 EUR.
pub(crate) fn answer(order_id: OrderId, event_type: &str) -> Event {
    let (version, amount_minor, currency, reason) = (1, 420, "EUR".to_owned(), "no".to_owned());
    match event_type {
        "stock.reserved" => Event::StockReserved(StockReserved { order_id, version, lines: vec![] }),
        "stock.rejected" => Event::StockRejected(StockRejected { order_id, version, short: vec![] }),
        "stock.committed" => Event::StockCommitted(StockCommitted { order_id, version }),
        "stock.released" => Event::StockReleased(StockReleased { order_id, version, lines: vec![] }),
        "payment.authorized" => {
            Event::PaymentAuthorized(PaymentAuthorized { order_id, version, amount_minor, currency })
        }
        "payment.captured" => {
            Event::PaymentCaptured(PaymentCaptured { order_id, version, amount_minor, currency })
        }
        "payment.declined" => Event::PaymentDeclined(PaymentDeclined { order_id, version, reason }),
        "payment.capture_failed" => {
            Event::PaymentCaptureFailed(PaymentCaptureFailed { order_id, version, reason })
        }
        "payment.voided" => Event::PaymentVoided(PaymentVoided { order_id, version }),
        other => panic!("no answer {other}"),
    }
}
