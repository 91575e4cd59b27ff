//! The running service: gRPC with health and reflection, and the admin port, under one supervisor.

use std::{convert::Infallible, time::Duration};

use proto::order::v1::order_service_server::OrderServiceServer;
use runtime::{Health, Supervisor, serve_admin};
use sea_orm::DatabaseConnection;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::{Error, grpc::Orders, settings::Settings};

/// Larger requests are refused before they are read; a valid one is far smaller.
const MAX_REQUEST_BYTES: usize = 2 * 1024 * 1024;
/// tonic sets no limit of its own.
const MAX_STREAMS: u32 = 256;

const DATABASE: &str = "database";
const PING_EVERY: Duration = Duration::from_secs(1);

/// Serves until `shutdown`, then ends the calls that are under way. `listener` is bound by the caller, who so knows
/// the port.
///
/// # Errors
/// Settings that make no pool, a port that is taken, a server that failed.
pub async fn serve(
    settings: Settings,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let db = database::connect(&settings.database).await?;
    let health = Health::default();
    let orders = OrderServiceServer::new(Orders {
        db: db.clone(),
        topic: settings.topics.orders.clone(),
        watch_interval: Duration::from_millis(settings.grpc.watch_interval_ms),
        shutdown: shutdown.clone(),
    })
    .max_decoding_message_size(MAX_REQUEST_BYTES);

    let (reporter, health_service) = tonic_health::server::health_reporter();
    reporter.set_serving::<OrderServiceServer<Orders>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .build_v1()?;
    tracing::info!(address = %listener.local_addr()?, "gRPC port");
    let server = Server::builder()
        .timeout(Duration::from_millis(settings.grpc.timeout_ms))
        .max_concurrent_streams(MAX_STREAMS)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(orders);

    let mut tasks = Supervisor::new(shutdown.clone());
    tasks.spawn("admin", serve_admin(settings.admin.address, health.clone(), shutdown.clone()));
    tasks.spawn("readiness", watch_database(db.clone(), health, shutdown.clone()));
    let ending = shutdown.clone();
    tasks.spawn("grpc", async move {
        server
            .serve_with_incoming_shutdown(TcpListenerStream::new(listener), ending.cancelled_owned())
            .await
            .map_err(Error::from)
    });
    tasks.run(Duration::from_millis(settings.drain_grace_ms)).await?;
    db.close().await?;
    Ok(())
}

/// Not ready while the database is away.
async fn watch_database(
    db: DatabaseConnection,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Infallible> {
    health.not_ready(DATABASE, "not asked yet");
    loop {
        match database::ping(&db).await {
            Ok(()) => health.ready(DATABASE),
            // Not the error's text: it may name hosts and users, and the port is open to whoever can reach it.
            Err(_) => health.not_ready(DATABASE, "away"),
        }
        tokio::select! {
            () = tokio::time::sleep(PING_EVERY) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}
