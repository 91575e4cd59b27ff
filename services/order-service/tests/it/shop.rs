//! A running order-service, with a database of its own.

use order_service::{migrations, serve, settings};
use proto::order::v1::{
    OrderLine, PlaceOrderRequest, PlaceOrderResponse, order_service_client::OrderServiceClient,
};
use testkit::TestDatabase;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Status, transport::Channel};
use uuid::Uuid;

pub(crate) struct Shop {
    pub(crate) database: TestDatabase,
    pub(crate) client: OrderServiceClient<Channel>,
    pub(crate) channel: Channel,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: tokio::task::JoinHandle<Result<(), order_service::Error>>,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::open_with(|_| ()).await
    }

    pub(crate) async fn open_with(change: impl FnOnce(&mut order_service::settings::Settings)) -> Self {
        let database = testkit::database(migrations()).await;
        let mut settings = settings::load(None).unwrap();
        settings.database = database.options();
        settings.admin.address = "127.0.0.1:0".parse().unwrap();
        settings.grpc.watch_interval_ms = 10;
        settings.orders.background = false;
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(serve(settings, listener, shutdown.clone()));
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        let client = OrderServiceClient::new(channel.clone()).max_encoding_message_size(16 << 20);
        Self { database, client, channel, shutdown, running }
    }

    pub(crate) async fn place(&self, request: PlaceOrderRequest) -> Result<PlaceOrderResponse, Status> {
        Ok(self.client.clone().place_order(request).await?.into_inner())
    }

    /// Orders, lines, and outbox rows.
    pub(crate) async fn rows(&self) -> (i64, i64, i64) {
        (
            self.database.number("select count(*) from orders").await,
            self.database.number("select count(*) from order_lines").await,
            self.database.number("select count(*) from outbox").await,
        )
    }
}

pub(crate) fn order(lines: &[(&str, i32)]) -> PlaceOrderRequest {
    let lines = lines.iter().map(|(sku, quantity)| OrderLine { sku: (*sku).to_owned(), quantity: *quantity });
    PlaceOrderRequest {
        customer: "ada".to_owned(),
        lines: lines.collect(),
        idempotency_key: Uuid::new_v4().to_string(),
        payment_token: String::new(),
    }
}
