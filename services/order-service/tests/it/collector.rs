//! Where the spans go is away, or takes them and never answers.

use nix::sys::signal::Signal;
use order_service::migrations;
use proto::order::v1::order_service_client::OrderServiceClient;
use testkit::{Service, until};
use tokio::net::TcpListener;

use crate::{process::PROGRAM, shop::order};

/// Each has several spans, far more in all than the exporter's queue has room for.
const ORDERS: i64 = 120;
const ROOM: &str = "16";

/// Callers at once.
const CALLERS: i64 = 4;

async fn orders_are_taken_with_spans_sent_to(collector: &str) {
    let database = testkit::database(migrations()).await;
    let address = testkit::free_address();
    let settings = [
        ("BREW__DATABASE__URL", database.url.as_str()),
        ("BREW__GRPC__ADDRESS", &address),
        ("BREW__ORDERS__BACKGROUND", "false"),
        // A call that waited for the collector would miss it.
        ("BREW__GRPC__TIMEOUT_MS", "5000"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector),
        ("OTEL_BSP_MAX_QUEUE_SIZE", ROOM),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", ROOM),
        ("RUST_LOG", "error"),
    ];
    let service = Service::start(PROGRAM, &[], &settings);
    let address = format!("http://{address}");
    let client =
        until("order-service", async || OrderServiceClient::connect(address.clone()).await.ok()).await;
    let calls = (0..CALLERS).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move {
            for _ in 0..ORDERS / CALLERS {
                let placed = client.place_order(order(&[("latte", 1)])).await.unwrap();
                assert!(placed.metadata().contains_key("trace-id"), "it is traced");
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(database.number("select count(*) from outbox").await, ORDERS);
    service.signal(Signal::SIGTERM);
    assert!(service.ended().await.success(), "it ends well, too");
}

#[tokio::test]
async fn a_collector_that_is_away_stops_no_order() {
    orders_are_taken_with_spans_sent_to(&format!("http://{}", testkit::free_address())).await;
}

#[tokio::test]
async fn a_collector_that_never_answers_stops_no_order() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let taking = tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            taken.push(stream);
        }
    });
    orders_are_taken_with_spans_sent_to(&silent).await;
    taking.abort();
}
