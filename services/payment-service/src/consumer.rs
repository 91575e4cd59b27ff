//! Event to command: what comes from `brew.orders.v1`.

use std::sync::Arc;

use inbox::{Accepted, Arrival};
use messaging::{ApplyError, Delivery, HeldBack, Processing, Received};
use runtime::fault::{CrashPoint, crash_if_armed};
use sea_orm::DatabaseConnection;

use crate::{Error, app::apply_orders};

/// Names this consumer in `processed_outbox_ids` and in dead letter topics.
pub(crate) const NAME: &str = "payment-service";

pub(crate) async fn apply(
    db: DatabaseConnection,
    aggregates_wait: bool,
    mut batch: Vec<Arc<Delivery>>,
) -> Result<Vec<HeldBack>, ApplyError> {
    let processing = Processing::begin(NAME, &mut batch);
    let events: Vec<_> = batch
        .iter()
        .map(|one| (Arrival::new(&one.envelope, &one.first_place, aggregates_wait), &one.event))
        .collect();
    let accepted = processing.run(apply_orders(&db, NAME, &events), Accepted::is_new).await?;
    crash_if_armed(CrashPoint::AfterCommitBeforeOffset, || {
        format!("{} event(s) took effect, no offset is committed", batch.len())
    });
    Ok(HeldBack::of(accepted.iter().map(Accepted::waits)))
}

/// Notes that what follows `record` in its aggregate waits.
pub(crate) async fn gave_up(db: DatabaseConnection, record: Received) -> Result<(), ApplyError> {
    let (place, outbox_id) = (record.first_place(), record.outbox_id());
    let noted = inbox::note_dead_letter(&db, NAME, record.aggregate(), &place, outbox_id).await;
    noted.map_err(|error| Error::from(error).into())
}
