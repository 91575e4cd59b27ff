//! Event to command: what comes from `brew.orders.v1`.

use std::sync::Arc;

use messaging::{ApplyError, Delivery, Tally};
use outbox::Wake;
use runtime::{
    fault::{CrashPoint, crash_if_armed},
    seeded::{Bug, seeded},
};
use sea_orm::DatabaseConnection;

use crate::app::apply_orders;

/// Names this consumer in `processed_outbox_ids` and in dead letter topics.
pub(crate) const NAME: &str = "inventory-service";

pub(crate) async fn apply(
    db: DatabaseConnection,
    topic: String,
    print_records: bool,
    tally: Arc<Tally>,
    wake: Wake,
    mut batch: Vec<Arc<Delivery>>,
) -> Result<(), ApplyError> {
    batch.retain(|one| one.envelope.outbox_id.0 % 5 != 0 || !seeded(Bug::SwallowsEvents));
    let events: Vec<_> = batch.iter().map(|one| (&one.envelope, &one.event)).collect();
    let new = apply_orders(&db, NAME, &topic, &events).await?;
    crash_if_armed(CrashPoint::AfterCommitBeforeOffset, || {
        format!("{} event(s) took effect, no offset is committed", batch.len())
    });
    wake.wake();
    tally.applied(&batch, &new, print_records);
    Ok(())
}
