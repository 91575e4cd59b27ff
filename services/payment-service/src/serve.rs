//! The running service: the consumer, the workers that call the provider, gRPC and the admin port, under one
//! supervisor.

use std::{sync::Arc, time::Duration};

use database::Gate;
use messaging::{ConsumeMode, Consumer, Delivery, retention_asker, wait_for_topics};
use outbox::Wake;
use proto::payment::v1::payment_service_server::PaymentServiceServer;
use runtime::{Health, Supervisor, serve_admin};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::{
    Error,
    consumer::{self, NAME},
    gateway::Gateway,
    grpc::Payments,
    settings::Settings,
    worker::{Circuit, Worker},
};

/// tonic sets no limit of its own.
const MAX_STREAMS: u32 = 256;

/// Consumes, calls and serves until `shutdown`.
///
/// # Errors
/// Settings that make no pool, client, consumer or server; a task that failed.
pub async fn serve(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    let db = database::connect(&settings.database).await?;
    let ask = retention_asker(&settings.kafka, &settings.consumer.topics);
    let lawful = inbox::check(&settings.inbox, &ask).await?;
    let health = Health::default();
    health.not_ready("topics", "not looked at yet");
    let mut tasks = Supervisor::new(shutdown.clone());
    tasks.spawn("admin", serve_admin(settings.admin.address, health.clone(), shutdown.clone()));
    let watch = runtime::watch(
        "database",
        health.clone(),
        shutdown.clone(),
        database::pinger(db.clone(), &settings.database),
    );
    tasks.spawn("readiness", watch);
    let payments = Payments { db: db.clone(), gate: Gate::new(db.clone(), &settings.database) };
    tasks.spawn("grpc", serve_grpc(settings.clone(), payments, shutdown.clone()));

    let wake = Wake::default();
    if settings.outbox.notify {
        tasks.spawn("notify", outbox::notify(db.clone(), wake.clone(), shutdown.clone()));
    }
    let timeout = Duration::from_millis(settings.gateway.timeout_ms);
    let retention = Duration::from_millis(settings.gateway.key_retention_ms);
    let worker = Worker {
        db: db.clone(),
        gateway: Gateway::new(&settings.gateway.url, timeout, retention)?,
        topic: settings.topics.payments.clone(),
        settings: settings.gateway.clone(),
        circuit: Arc::new(Circuit::default()),
        wake,
    };
    for _ in 0..settings.gateway.workers.max(1) {
        tasks.spawn("gateway worker", worker.clone().run(shutdown.clone()));
    }
    let pruning = inbox::keep_pruned(db.clone(), NAME, settings.inbox.clone(), ask, lawful, shutdown.clone());
    tasks.spawn("inbox", pruning);
    let grace = Duration::from_millis(settings.drain_grace_ms);
    let pool = db.clone();
    tasks.spawn("consumer", async move {
        let told = |why: Option<String>| match why {
            Some(why) => health.not_ready("topics", why),
            None => health.ready("topics"),
        };
        wait_for_topics(&settings.kafka, &settings.consumer, told, &shutdown).await;
        let consumer = Consumer::new(&settings.kafka, &settings.consumer, NAME)?;
        let waits = settings.consumer.dead_letter_aggregates_wait;
        let apply = |batch: Vec<Arc<Delivery>>| consumer::apply(pool.clone(), waits, batch);
        let gave_up = |record| consumer::gave_up(pool.clone(), record);
        consumer.run(Delivery::decode, apply, gave_up, ConsumeMode::Forever, shutdown).await?;
        Ok::<(), messaging::Error>(())
    });
    tasks.run(grace).await?;
    db.close().await?;
    Ok(())
}

async fn serve_grpc(
    settings: Settings,
    payments: Payments,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let listener = TcpListener::bind(settings.grpc.address).await?;
    tracing::info!(address = %listener.local_addr()?, "gRPC port");
    let (reporter, health_service) = tonic_health::server::health_reporter();
    reporter.set_serving::<PaymentServiceServer<Payments>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .build_v1()?;
    Server::builder()
        .timeout(Duration::from_millis(settings.grpc.timeout_ms))
        .max_concurrent_streams(MAX_STREAMS)
        .layer(telemetry::rpc::GrpcLayer)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(PaymentServiceServer::new(payments))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), shutdown.cancelled_owned())
        .await?;
    Ok(())
}
