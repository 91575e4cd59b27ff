//! Event to command: what comes from `brew.inventory.v1` and `brew.payments.v1`.

use std::sync::Arc;

use messaging::{ApplyError, Delivery, Tally};
use outbox::Wake;
use runtime::fault::{CrashPoint, crash_if_armed};
use sea_orm::DatabaseConnection;

use crate::app::apply_answers;

/// Names this consumer in `processed_outbox_ids` and in dead letter topics.
pub(crate) const NAME: &str = "order-service";

pub(crate) async fn apply(
    db: DatabaseConnection,
    topic: String,
    tally: Arc<Tally>,
    wake: Wake,
    batch: Vec<Arc<Delivery>>,
) -> Result<(), ApplyError> {
    let events: Vec<_> = batch.iter().map(|one| (&one.envelope, &one.event)).collect();
    let new = apply_answers(&db, NAME, &topic, &events).await?;
    crash_if_armed(CrashPoint::AfterCommitBeforeOffset, || {
        format!("{} event(s) took effect, no offset is committed", batch.len())
    });
    wake.wake();
    tally.applied(&batch, &new, false);
    Ok(())
}
