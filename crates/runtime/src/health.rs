//! `/livez`, `/readyz`, `/metrics` and `/buildinfo` on an admin port of its own.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderName, StatusCode, header::CONTENT_TYPE},
    routing::get,
};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What a service waits for before it is ready; cheap to clone.
#[derive(Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<String, Option<String>>>>);

impl Health {
    /// Says that `part` is not ready, and why. The service is ready when no part says so.
    pub fn not_ready(&self, part: impl Into<String>, why: impl Into<String>) {
        self.parts().insert(part.into(), Some(why.into()));
    }

    /// Says that `part` is ready.
    pub fn ready(&self, part: impl Into<String>) {
        self.parts().insert(part.into(), None);
    }

    /// Each part that is not ready, with its reason; empty when the service is.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<String> {
        self.parts()
            .iter()
            .filter_map(|(part, why)| why.as_ref().map(|why| format!("{part}: {why}")))
            .collect()
    }

    fn parts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The admin port's settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdminOptions {
    /// Where it listens.
    pub address: SocketAddr,
}

/// How often [`watch`] asks.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Keeps `part` ready while `ask` succeeds, until `shutdown`.
///
/// # Errors
/// Never; so that it can be [spawned](crate::Supervisor::spawn) as it is.
pub async fn watch<F, E>(
    part: &'static str,
    health: Health,
    shutdown: CancellationToken,
    ask: impl Fn() -> F,
) -> Result<(), Infallible>
where
    F: Future<Output = Result<(), E>>,
{
    health.not_ready(part, "not asked yet");
    loop {
        match ask().await {
            Ok(()) => health.ready(part),
            // Not the error's text: it may name hosts and users, and the port is open to whoever can reach it.
            Err(_) => health.not_ready(part, "away"),
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_EVERY) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

/// Serves the admin port until `shutdown`.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve_admin(
    address: SocketAddr,
    health: Health,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    serve_admin_on(TcpListener::bind(address).await?, health, shutdown).await
}

/// The same on a port that is bound already.
pub(crate) async fn serve_admin_on(
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    tracing::info!(address = %listener.local_addr()?, "admin port");
    let routes = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/buildinfo", get(async || buildinfo()))
        .with_state(health);
    axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

async fn metrics() -> (StatusCode, [(HeaderName, &'static str); 1], String) {
    let (status, text) = match telemetry::metrics::text() {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    (status, [(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

fn buildinfo() -> Json<serde_json::Value> {
    Json(serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("BREW_COMMIT").unwrap_or("unknown"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
    }))
}

async fn readyz(State(health): State<Health>) -> (StatusCode, String) {
    let waiting = health.waiting_for();
    if waiting.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, waiting.join("\n") + "\n")
    }
}
