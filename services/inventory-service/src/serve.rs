//! The running service: the consumer, gRPC and the admin port, under one supervisor.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use database::Gate;
use messaging::{ConsumeMode, Consumer, Delivery, Tally, retention_asker, wait_for_topics};
use outbox::Wake;
use proto::inventory::v1::inventory_service_server::InventoryServiceServer;
use runtime::{Health, Supervisor, serve_admin};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::{
    Error,
    consumer::{self, NAME},
    grpc::Inventory,
    settings::Settings,
};

/// tonic sets no limit of its own.
const MAX_STREAMS: u32 = 256;

/// What the command line adds to the settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Stop when the topics are read to their end.
    pub exit_when_idle: bool,
    /// Print an `INSERT` or `DUP` line for each event, and the sums at the end.
    pub print_records: bool,
}

/// Consumes and serves until `shutdown`, or until idle; counts in `tally`.
///
/// # Errors
/// Settings that make no pool, consumer or server; a task that failed.
pub async fn serve(
    settings: Settings,
    options: Options,
    tally: Arc<Tally>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let db = database::connect(&settings.database).await?;
    let ask = retention_asker(&settings.kafka, &settings.consumer.topics);
    let lawful = inbox::check(&settings.inbox, &ask).await?;
    let health = Health::default();
    health.not_ready("topics", "not looked at yet");
    let grace = Duration::from_millis(settings.drain_grace_ms);
    // Ends the servers also when the consumer has ended by itself.
    let servers = shutdown.child_token();

    let mut tasks = Supervisor::new(shutdown.clone());
    tasks.spawn("admin", serve_admin(settings.admin.address, health.clone(), servers.clone()));
    let watch = runtime::watch(
        "database",
        health.clone(),
        servers.clone(),
        database::pinger(db.clone(), &settings.database),
    );
    tasks.spawn("readiness", watch);
    let inventory = Inventory { db: db.clone(), gate: Gate::new(db.clone(), &settings.database) };
    tasks.spawn("grpc", serve_grpc(settings.clone(), inventory, servers.clone()));

    let wake = Wake::default();
    if settings.outbox.notify {
        tasks.spawn("notify", outbox::notify(db.clone(), wake.clone(), servers.clone()));
    }
    let pruning = inbox::keep_pruned(db.clone(), NAME, settings.inbox.clone(), ask, lawful, servers.clone());
    tasks.spawn("inbox", pruning);
    let mode = if options.exit_when_idle { ConsumeMode::UntilIdle } else { ConsumeMode::Forever };
    let (pool, counts) = (db.clone(), Arc::clone(&tally));
    tasks.spawn("consumer", async move {
        let told = |why: Option<String>| match why {
            Some(why) => health.not_ready("topics", why),
            None => health.ready("topics"),
        };
        wait_for_topics(&settings.kafka, &settings.consumer, told, &shutdown).await;
        let consumer = Consumer::new(&settings.kafka, &settings.consumer, NAME)?;
        let apply = |batch: Vec<Arc<Delivery>>| {
            let (db, topic, counts) = (pool.clone(), settings.topics.inventory.clone(), Arc::clone(&counts));
            let waits = settings.consumer.dead_letter_aggregates_wait;
            consumer::apply(db, topic, options.print_records, waits, counts, wake.clone(), batch)
        };
        let gave_up = |record| consumer::gave_up(pool.clone(), record);
        let done = consumer.run(Delivery::decode, apply, gave_up, mode, shutdown).await?;
        counts.dead_letters.fetch_add(done.dead_letters, Relaxed);
        servers.cancel();
        Ok::<(), messaging::Error>(())
    });
    tasks.run(grace).await?;
    db.close().await?;
    if options.print_records {
        tally.print();
    }
    Ok(())
}

async fn serve_grpc(
    settings: Settings,
    inventory: Inventory,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let listener = TcpListener::bind(settings.grpc.address).await?;
    tracing::info!(address = %listener.local_addr()?, "gRPC port");
    let (reporter, health_service) = tonic_health::server::health_reporter();
    reporter.set_serving::<InventoryServiceServer<Inventory>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .build_v1()?;
    Server::builder()
        .timeout(Duration::from_millis(settings.grpc.timeout_ms))
        .max_concurrent_streams(MAX_STREAMS)
        .layer(telemetry::rpc::GrpcLayer)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(InventoryServiceServer::new(inventory))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), shutdown.cancelled_owned())
        .await?;
    Ok(())
}
