//! Event to command: what comes from `brew.inventory.v1` and `brew.payments.v1`.

use std::sync::Arc;

use inbox::{Accepted, Arrival};
use messaging::{ApplyError, Delivery, HeldBack, Processing, Received, Tally};
use outbox::Wake;
use runtime::fault::{CrashPoint, crash_if_armed};
use sea_orm::DatabaseConnection;
use tracing::Instrument;

use crate::{Error, app::apply_answers};

/// Names this consumer in `processed_outbox_ids` and in dead letter topics.
pub(crate) const NAME: &str = "order-service";

pub(crate) async fn apply(
    db: DatabaseConnection,
    topic: String,
    aggregates_wait: bool,
    tally: Arc<Tally>,
    wake: Wake,
    mut batch: Vec<Arc<Delivery>>,
) -> Result<Vec<HeldBack>, ApplyError> {
    let processing = Processing::begin(NAME, &mut batch);
    let events: Vec<_> = batch
        .iter()
        .map(|one| (Arrival::new(&one.envelope, &one.first_place, aggregates_wait), &one.event))
        .collect();
    let accepted = match apply_answers(&db, NAME, &topic, &events).instrument(processing.span()).await {
        Ok(accepted) => accepted,
        Err(error) => {
            let error = ApplyError::from(error);
            processing.failed(&error);
            return Err(error);
        }
    };
    processing.applied(accepted.iter().map(Accepted::is_new));
    crash_if_armed(CrashPoint::AfterCommitBeforeOffset, || {
        format!("{} event(s) took effect, no offset is committed", batch.len())
    });
    wake.wake();
    tally.applied(&batch, accepted.iter().map(Accepted::is_new), false);
    Ok(HeldBack::of(accepted.iter().map(Accepted::waits)))
}

/// Notes that what follows `record` in its aggregate waits.
pub(crate) async fn gave_up(db: DatabaseConnection, record: Received) -> Result<(), ApplyError> {
    let (place, outbox_id) = (record.first_place(), record.outbox_id());
    let noted = inbox::note_dead_letter(&db, NAME, record.aggregate(), &place, outbox_id).await;
    noted.map_err(|error| Error::from(error).into())
}
