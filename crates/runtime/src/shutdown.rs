//! SIGTERM and SIGINT become one token, passed in to every loop.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled at the first SIGTERM or SIGINT. The process then drains; a second SIGINT ends it at
/// once, as a person at a terminal expects.
///
/// # Errors
/// When the signal handlers cannot be installed.
pub fn shutdown_token() -> std::io::Result<CancellationToken> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => tracing::info!("SIGTERM: draining"),
            _ = interrupt.recv() => tracing::info!("interrupted: draining"),
        }
        cancel.cancel();
        interrupt.recv().await;
        tracing::warn!("interrupted again: ending without a drain");
        std::process::abort();
    });
    Ok(token)
}
