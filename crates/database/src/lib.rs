//! A service's own database: connecting, migrating with plain SQL, and telling whose fault an error is.

mod decider;
mod failure;
mod gate;
mod migrate;

use std::{future::Future, pin::Pin, time::Duration};

use opentelemetry::{KeyValue, global, metrics::AsyncInstrument};
use sea_orm::{ConnAcquireErr, ConnectOptions, Database, DatabaseConnection, DbErr};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

pub use decider::Decider;
pub use failure::{Failure, failure};
pub use gate::{Gate, Place};
pub use migrate::{Migration, await_schema, migrate, migrate_at, revert};

/// What went wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database's or the driver's own word.
    #[error("database")]
    Database(#[from] DbErr),
    /// [`await_schema`] has waited for long enough.
    #[error(
        "after {waited_s} s the database has not this version's schema: {why}; does the job run that migrates it?"
    )]
    NoSchema {
        /// What was found last.
        why: String,
        /// For how long.
        waited_s: u64,
    },
}

/// How to reach the database.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `postgres://user:password@host:port/name`
    pub url: SecretString,
    /// At most this many connections.
    pub max_connections: u32,
    /// How long a call waits for its turn ([`Gate`]), and a [`pinger`] for an answer.
    pub acquire_timeout_ms: u64,
}

/// How long opening a connection may take, also when all are opened at once on a busy machine.
const OPENING: Duration = Duration::from_secs(10);

/// Makes a pool. Connects at first use, so a database that is away now is found away then.
///
/// # Errors
/// When the URL makes no sense.
pub async fn connect(options: &Options) -> Result<DatabaseConnection, Error> {
    let timeout = OPENING.max(Duration::from_millis(options.acquire_timeout_ms));
    let mut connect = ConnectOptions::new(options.url.expose_secret());
    connect
        .max_connections(options.max_connections)
        .acquire_timeout(timeout)
        .connect_lazy(true)
        .sqlx_logging(false);
    let db = Database::connect(connect).await?;
    tell(&db);
    Ok(db)
}

/// The pool's connections, whenever somebody asks for metrics.
fn tell(db: &DatabaseConnection) {
    let metric = telemetry::catalogue::DB_CONNECTIONS;
    let pool = db.get_postgres_connection_pool().clone();
    let callback = move |gauge: &dyn AsyncInstrument<f64>| {
        let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
        gauge.observe(f64::from(idle), &[KeyValue::new("state", "idle")]);
        gauge.observe(f64::from(pool.size().saturating_sub(idle)), &[KeyValue::new("state", "used")]);
    };
    let meter = global::meter("brew");
    meter.f64_observable_gauge(metric.name).with_description(metric.help).with_callback(callback).build();
}

/// What asks the database for a sign of life, each time it is called; fails when none comes within `options`'
/// acquire timeout.
pub fn pinger(db: DatabaseConnection, options: &Options) -> impl Fn() -> PingFuture + use<> {
    let wait = Duration::from_millis(options.acquire_timeout_ms);
    move || {
        let db = db.clone();
        Box::pin(async move {
            let late = || DbErr::ConnectionAcquire(ConnAcquireErr::Timeout);
            Ok(tokio::time::timeout(wait, db.ping()).await.map_err(|_| late())??)
        })
    }
}

/// A question that is under way.
pub type PingFuture = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
