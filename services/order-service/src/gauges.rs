//! What is asked of the database now and then, for whoever watches.

use std::{convert::Infallible, time::Duration};

use sea_orm::DatabaseConnection;
use telemetry::{catalogue, metrics};
use tokio_util::sync::CancellationToken;

use crate::store::sagas;

const EVERY: Duration = Duration::from_secs(5);

/// Tells the age of the oldest open order until `shutdown`. A database that is away leaves the last figure as it is.
pub(crate) async fn watch(db: DatabaseConnection, shutdown: CancellationToken) -> Result<(), Infallible> {
    let oldest = metrics::gauge(&catalogue::ORDER_OPEN);
    loop {
        match sagas::oldest_open_age_s(&db).await {
            Ok(age_s) => oldest.record(age_s, &[]),
            Err(error) => tracing::debug!(%error, "oldest open order not asked for"),
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}
