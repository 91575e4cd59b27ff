//! The running service: gRPC with health and reflection, and the admin port, under one supervisor.

use std::{sync::Arc, time::Duration};

use database::Gate;
use messaging::{ConsumeMode, Consumer, Delivery, retention_asker, wait_for_topics};
use outbox::Wake;
use proto::order::v1::order_service_server::OrderServiceServer;
use relay::{Mode, Setup, Source, Target};
use runtime::{Health, Supervisor, serve_admin};
use sea_orm::DatabaseConnection;
use secrecy::ExposeSecret;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::{
    Error,
    consumer::{self, NAME},
    gauges,
    grpc::Orders,
    settings::Settings,
    sweeper::sweep,
};

/// Larger requests are refused before they are read; a valid one is far smaller.
const MAX_REQUEST_BYTES: usize = 2 * 1024 * 1024;
/// tonic sets no limit of its own.
const MAX_STREAMS: u32 = 256;

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
    let (health, wake) = (Health::default(), Wake::default());
    let orders = OrderServiceServer::new(Orders {
        db: db.clone(),
        gate: Arc::new(Gate::new(db.clone(), &settings.database)),
        topic: settings.topics.orders.clone(),
        answer_timeout: Duration::from_millis(settings.orders.answer_timeout_ms),
        watch_interval: Duration::from_millis(settings.grpc.watch_interval_ms),
        shutdown: shutdown.clone(),
        wake: wake.clone(),
        room: Semaphore::new(settings.grpc.max_calls),
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
        .layer(telemetry::rpc::GrpcLayer)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(orders);

    let mut tasks = Supervisor::new(shutdown.clone());
    tasks.spawn("admin", serve_admin(settings.admin.address, health.clone(), shutdown.clone()));
    let watch = runtime::watch(
        "database",
        health.clone(),
        shutdown.clone(),
        database::pinger(db.clone(), &settings.database),
    );
    tasks.spawn("readiness", watch);
    if settings.outbox.notify {
        tasks.spawn("notify", outbox::notify(db.clone(), wake.clone(), shutdown.clone()));
    }
    if settings.relay.in_process {
        settings.relay.options.validate()?;
        tasks.spawn("relay", publish(&settings, health.clone(), wake.clone(), shutdown.clone()));
    }
    if settings.orders.background {
        background(&mut tasks, &settings, &db, (health, wake), &shutdown).await?;
    }
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

/// Publishes the service's own outbox.
fn publish(
    settings: &Settings,
    health: Health,
    wake: Wake,
    shutdown: CancellationToken,
) -> impl Future<Output = Result<(), relay::Error>> + Send + 'static {
    // Woken in memory: it need not listen.
    let source = Source::new("orders", settings.database.url.expose_secret());
    let setup = Setup {
        source: Source { workers: settings.relay.workers, ..source },
        target: Target {
            kafka: settings.kafka.clone(),
            declared: [(settings.topics.orders.clone(), settings.kafka.partitions)].into(),
        },
        options: settings.relay.options.clone(),
        mode: Mode::Forever,
        health,
        observer: None,
        wake,
    };
    async move { relay::run(setup, shutdown).await.map(drop) }
}

/// The consumer of answers, the pruning of what it remembers, and the sweeper of overdue orders.
async fn background(
    tasks: &mut Supervisor,
    settings: &Settings,
    db: &DatabaseConnection,
    (health, wake): (Health, Wake),
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let ask = retention_asker(&settings.kafka, &settings.consumer.topics);
    let lawful = inbox::check(&settings.inbox, &ask).await?;
    let remembered = settings.inbox.clone();
    let pruning = inbox::keep_pruned(db.clone(), NAME, remembered, ask, lawful, shutdown.clone());
    tasks.spawn("inbox", pruning);

    health.not_ready("topics", "not looked at yet");
    let interval = Duration::from_millis(settings.orders.sweep_interval_ms);
    let topic = settings.topics.orders.clone();
    tasks.spawn("sweeper", sweep(db.clone(), topic, interval, wake.clone(), shutdown.clone()));

    tasks.spawn("gauges", gauges::watch(db.clone(), shutdown.clone()));

    let (settings, db, shutdown) = (settings.clone(), db.clone(), shutdown.clone());
    tasks.spawn("consumer", async move {
        let told = |why: Option<String>| match why {
            Some(why) => health.not_ready("topics", why),
            None => health.ready("topics"),
        };
        wait_for_topics(&settings.kafka, &settings.consumer, told, &shutdown).await;
        let consumer = Consumer::new(&settings.kafka, &settings.consumer, NAME)?;
        let apply = |batch: Vec<Arc<Delivery>>| {
            let topic = settings.topics.orders.clone();
            let waits = settings.consumer.dead_letter_aggregates_wait;
            consumer::apply(db.clone(), topic, waits, wake.clone(), batch)
        };
        let gave_up = |record| consumer::gave_up(db.clone(), record);
        consumer.run(Delivery::decode, apply, gave_up, ConsumeMode::Forever, shutdown).await?;
        Ok::<(), messaging::Error>(())
    });
    Ok(())
}
