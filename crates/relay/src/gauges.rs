//! What waits in an outbox, asked now and then.

use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use outbox::SessionOptions;
use telemetry::{catalogue, metrics};
use tokio_util::sync::CancellationToken;

/// At least so long between two looks, each on a connection of its own.
const EVERY: Duration = Duration::from_secs(5);
/// A look takes at most this part of the time: one in twenty. Under a snapshot that somebody holds it takes longer and
/// longer.
const SHARE: u32 = 20;

/// Asks until `shutdown`. A database that is away leaves the last figures as they are; whether the relay is ready is
/// told elsewhere.
pub(crate) async fn watch(source: String, session: SessionOptions, shutdown: CancellationToken) {
    let label = [KeyValue::new("source", source.clone())];
    let pending = metrics::gauge(&catalogue::OUTBOX_PENDING);
    let oldest = metrics::gauge(&catalogue::OUTBOX_OLDEST);
    let parked = metrics::gauge(&catalogue::OUTBOX_PARKED);
    let slot = metrics::gauge(&catalogue::OUTBOX_SLOT);
    let look = async {
        loop {
            let began = Instant::now();
            match ask(&session).await {
                Ok(found) => {
                    pending.record(found.pending as f64, &label);
                    oldest.record(found.oldest_pending_age_s, &label);
                    parked.record(found.parked as f64, &label);
                    slot.record(found.slot_lag_bytes, &label);
                }
                Err(error) => {
                    tracing::debug!(source, error = telemetry::chain(&error), "outbox not looked at");
                }
            }
            tokio::time::sleep(EVERY.max(began.elapsed() * SHARE)).await;
        }
    };
    tokio::select! {
        () = look => {}
        () = shutdown.cancelled() => {}
    }
}

async fn ask(session: &SessionOptions) -> Result<outbox::Gauges, outbox::Error> {
    outbox::gauges(&outbox::connect(session).await?).await
}
