//! The service publishes its own outbox.

use order_service::{migrations, serve, settings};
use proto::order::v1::order_service_client::OrderServiceClient;
use testkit::{history, until};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::shop::order;

/// Two instances side by side on one database, each of which looks by itself only every ten minutes: what is placed at
/// either is published at once, in order, once.
#[tokio::test]
async fn orders_are_published_by_the_instances_that_took_them() {
    let database = testkit::database(migrations()).await;
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let shutdown = CancellationToken::new();
    let mut instances = Vec::new();
    for _ in 0..2 {
        let mut settings = settings::load(None).unwrap();
        settings.database = database.options();
        settings.kafka = kafka.clone();
        settings.admin.address = "127.0.0.1:0".parse().unwrap();
        settings.orders.background = false;
        settings.topics.orders = topic.clone();
        settings.relay.in_process = true;
        settings.relay.options.poll_min_ms = 600_000;
        settings.relay.options.poll_max_ms = 600_000;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let running = tokio::spawn(serve(settings, listener, shutdown.clone()));
        instances.push((OrderServiceClient::connect(address).await.unwrap(), running));
    }
    for _ in 0..20 {
        for (client, _) in &mut instances {
            client.place_order(order(&[("latte", 1)])).await.unwrap();
        }
    }
    let published = "select count(published_at) from outbox";
    until("all events to be published", async || (database.number(published).await == 40).then_some(()))
        .await;
    shutdown.cancel();
    for (_, running) in instances {
        running.await.unwrap().unwrap();
    }
    let history = history(&testkit::read(&topic).await);
    assert_eq!((history.ids.len(), history.repeats, history.out_of_order().len()), (40, 0, 0));
}
