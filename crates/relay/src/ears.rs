//! Listens for wake-ups of other processes, and reconnects.

use std::time::Duration;

use outbox::{SessionOptions, Wake};
use tokio_util::sync::CancellationToken;

/// Before the next try, when the connection is lost. The poller works meanwhile.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn listen(source: String, options: SessionOptions, wake: Wake, shutdown: CancellationToken) {
    loop {
        let ended = tokio::select! {
            ended = outbox::listen(&options, &wake) => ended,
            () = shutdown.cancelled() => return,
        };
        if let Err(error) = ended {
            tracing::warn!(
                source,
                error = telemetry::chain(&error),
                "not listening for wake-ups, trying again"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
