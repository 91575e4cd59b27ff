//! `/livez` and `/readyz` on an admin port of its own.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
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

/// Serves the admin port until `shutdown`.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve_admin(
    address: SocketAddr,
    health: Health,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "admin port");
    let routes = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(health);
    axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

async fn readyz(State(health): State<Health>) -> (StatusCode, String) {
    let waiting = health.waiting_for();
    if waiting.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, waiting.join("\n") + "\n")
    }
}
