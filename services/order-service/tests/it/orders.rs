//! Placing, finding, listing, watching; health and reflection.

use events::{Event, topic};
use proto::order::v1::{GetOrderRequest, ListOrdersRequest, OrderStatus, WatchOrderRequest};
use tokio_stream::StreamExt;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::shop::{Shop, order};

#[tokio::test]
async fn an_order_its_lines_and_its_event_are_stored_together() {
    let shop = Shop::open().await;
    let placed = shop.place(order(&[("latte", 2), ("croissant", 1)])).await.unwrap();
    let order = placed.order.unwrap();
    assert_eq!((order.order_id.as_str(), order.version, placed.replayed), ("order-1", 1, false));
    assert_eq!((order.total_minor, order.currency.as_str()), (2 * 420 + 280, "EUR"));
    assert_eq!(order.status(), OrderStatus::Pending);
    assert_eq!(shop.rows().await, (1, 2, 1));

    let row = shop
        .database
        .client()
        .await
        .query_one("select aggregate_id, topic, event_type, source, payload::text from outbox", &[])
        .await
        .unwrap();
    let texts: Vec<&str> = (0..4).map(|column| row.get(column)).collect();
    assert_eq!(texts, ["order-1", topic::ORDERS, "order.created", "order-service"]);
    let Event::OrderCreated(event) = serde_json::from_str(row.get(4)).unwrap() else {
        panic!("another event");
    };
    assert_eq!((event.order_id.to_string(), event.version, event.total_minor), (order.order_id, 1, 1120));
    assert!(!row.get::<_, &str>(4).contains("ada"), "an event carries no personal data");
}

#[tokio::test]
async fn orders_are_found_and_listed_a_page_at_a_time() {
    let mut shop = Shop::open().await;
    for quantity in 1..=5 {
        shop.place(order(&[("latte", quantity)])).await.unwrap();
    }
    let found = shop.client.get_order(GetOrderRequest { order_id: "order-3".to_owned() }).await.unwrap();
    assert_eq!(found.into_inner().order.unwrap().lines[0].quantity, 3);
    let missing = shop.client.get_order(GetOrderRequest { order_id: "order-6".to_owned() }).await;
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);

    let mut seen = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListOrdersRequest { customer: "ada".to_owned(), page_size: 2, page_token };
        let page = shop.client.list_orders(request).await.unwrap().into_inner();
        seen.extend(page.orders.into_iter().map(|order| order.order_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["order-5", "order-4", "order-3", "order-2", "order-1"]);
    let nobody = ListOrdersRequest { customer: "bob".to_owned(), ..Default::default() };
    assert!(shop.client.list_orders(nobody).await.unwrap().into_inner().orders.is_empty());
}

#[tokio::test]
async fn a_watch_sends_the_order_and_each_change_of_it() {
    let mut shop = Shop::open().await;
    shop.place(order(&[("latte", 1)])).await.unwrap();
    let watch = WatchOrderRequest { order_id: "order-1".to_owned() };
    let mut changes = shop.client.watch_order(watch).await.unwrap().into_inner();
    let version = |change: Option<Result<proto::order::v1::WatchOrderResponse, _>>| {
        change.map(|change: Result<_, tonic::Status>| change.unwrap().order.unwrap().version)
    };
    assert_eq!(version(changes.next().await), Some(1));
    shop.database.client().await.batch_execute("update orders set version = 2").await.unwrap();
    assert_eq!(version(changes.next().await), Some(2));

    // The end of the service ends the watch with a reason, and does not wait for the caller.
    shop.shutdown.cancel();
    assert_eq!(changes.next().await.unwrap().unwrap_err().code(), Code::Unavailable);
    drop((changes, shop.client, shop.channel));
    shop.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn health_and_reflection_answer() {
    let shop = Shop::open().await;
    let check = HealthCheckRequest { service: "brew.order.v1.OrderService".to_owned() };
    let health = HealthClient::new(shop.channel.clone()).check(check).await.unwrap();
    assert_eq!(health.into_inner().status, 1);

    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = ServerReflectionClient::new(shop.channel.clone())
        .server_reflection_info(tokio_stream::once(request))
        .await
        .unwrap()
        .into_inner();
    let answer = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("another answer") };
    assert!(list.service.iter().any(|service| service.name == "brew.order.v1.OrderService"));
}
