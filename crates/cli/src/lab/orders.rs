//! Orders through gRPC, at a service that runs for just as long.

use std::time::Duration;

use anyhow::{Context, bail};
use nix::{sys::signal::Signal, unistd::Pid};
use proto::order::v1::{OrderLine, PlaceOrderRequest, order_service_client::OrderServiceClient};
use tokio::process::Child;
use tonic::transport::Channel;

use crate::local::State;

use super::service;

/// What the lab's customers drink, in turn.
pub(crate) const MENU: [&str; 7] =
    ["espresso", "americano", "cappuccino", "flat-white", "latte", "mocha", "croissant"];

/// Starts order-service, places `count` orders, stops it, and says what was placed.
pub(crate) async fn run_service(state: &State, count: u32) -> anyhow::Result<String> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = format!("127.0.0.1:{port}");
    let mut service = service::order_service(state)?
        .env("BREW__GRPC__ADDRESS", &address)
        .spawn()
        .context("start order-service")?;
    let placed = place(&address, count, &mut service).await;
    stop(service).await?;
    let ids = placed?;
    Ok(match (ids.first(), ids.last()) {
        (Some(first), Some(last)) => format!("placed {count} orders through gRPC: {first} to {last}"),
        _ => "placed no orders".to_owned(),
    })
}

async fn place(address: &str, count: u32, service: &mut Child) -> anyhow::Result<Vec<String>> {
    let mut client = client(address, service).await?;
    let mut ids = Vec::new();
    for (number, sku) in (0..count).zip(MENU.iter().cycle()) {
        let request = PlaceOrderRequest {
            customer: format!("customer-{}", number % 10),
            lines: vec![OrderLine { sku: (*sku).to_owned(), quantity: 1 }],
            idempotency_key: uuid::Uuid::new_v4().to_string(),
            payment_token: String::new(),
        };
        let placed = client.place_order(request).await.context("place an order")?.into_inner();
        ids.push(placed.order.context("an answer without an order")?.order_id);
    }
    Ok(ids)
}

async fn client(address: &str, service: &mut Child) -> anyhow::Result<OrderServiceClient<Channel>> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(15);
    loop {
        match OrderServiceClient::connect(format!("http://{address}")).await {
            Ok(client) => return Ok(client),
            Err(error) if tokio::time::Instant::now() > deadline => {
                return Err(error).context("order-service does not answer");
            }
            Err(_) => {}
        }
        if let Some(end) = service.try_wait()? {
            bail!("order-service ended with {end}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn stop(mut service: Child) -> anyhow::Result<()> {
    if let Some(pid) = service.id() {
        nix::sys::signal::kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
    }
    let end = service.wait().await?;
    if end.success() { Ok(()) } else { bail!("order-service ended with {end}") }
}
