//! The running gateway.

use std::time::Duration;

use database::Migration;
use runtime::{Health, Supervisor, serve_admin};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    http::{Gateway, routes},
    settings::Settings,
};

/// Why the gateway ended otherwise than it should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database's settings make no pool.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// A listener that cannot be bound.
    #[error("listen")]
    Listen(#[from] std::io::Error),
    /// A task failed.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
}

/// Every migration of the gateway's database.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    vec![Migration::new(
        "payment_gateway_0001_create_ledger",
        include_str!("../migrations/0001_create_ledger.up.sql"),
        include_str!("../migrations/0001_create_ledger.down.sql"),
    )]
}

/// Serves until `shutdown`. `listener` is bound by the caller, who so knows the port.
///
/// # Errors
/// Settings that make no pool; a task that failed.
pub async fn serve(
    settings: Settings,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let db = database::connect(&settings.database).await?;
    tracing::info!(address = %listener.local_addr()?, "HTTP port");
    let health = Health::default();
    let mut tasks = Supervisor::new(shutdown.clone());
    tasks.spawn("admin", serve_admin(settings.admin.address, health.clone(), shutdown.clone()));
    let watch = runtime::watch(
        "database",
        health,
        shutdown.clone(),
        database::pinger(db.clone(), &settings.database),
    );
    tasks.spawn("readiness", watch);
    let routes = routes(Gateway { db, misbehave: settings.misbehave });
    tasks.spawn("http", async move {
        axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await
    });
    match tasks.run(Duration::from_millis(settings.drain_grace_ms)).await {
        // A call that hangs on purpose is not waited for.
        Err(runtime::Error::Undrained { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
