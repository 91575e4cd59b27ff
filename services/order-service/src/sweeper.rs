//! Looks for overdue orders, again and again.

use std::{convert::Infallible, time::Duration};

use outbox::Wake;
use sea_orm::DatabaseConnection;
use tokio_util::sync::CancellationToken;

use crate::app::expire_orders;

/// Cancels overdue orders every `interval` until `shutdown`. What goes wrong is told, and tried again in the
/// next turn.
pub(crate) async fn sweep(
    db: DatabaseConnection,
    topic: String,
    interval: Duration,
    wake: Wake,
    shutdown: CancellationToken,
) -> Result<(), Infallible> {
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
        match expire_orders(&db, &topic).await {
            Ok(0) => {}
            Ok(count) => {
                wake.wake();
                tracing::info!(count, "orders without an answer were cancelled");
            }
            Err(error) => tracing::warn!(%error, "overdue orders not looked at"),
        }
    }
}
