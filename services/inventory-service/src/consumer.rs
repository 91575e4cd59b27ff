//! Event to command: what comes from `brew.orders.v1`.

use std::sync::Arc;

use inbox::{Accepted, Arrival};
use messaging::{ApplyError, Delivery, HeldBack, Processing, Received, Tally};
use outbox::Wake;
use runtime::{
    fault::{CrashPoint, crash_if_armed},
    seeded::{Bug, seeded},
};
use sea_orm::DatabaseConnection;

use crate::{Error, app::apply_orders};

/// Names this consumer in `processed_outbox_ids` and in dead letter topics.
pub(crate) const NAME: &str = "inventory-service";

pub(crate) async fn apply(
    db: DatabaseConnection,
    topic: String,
    print_records: bool,
    aggregates_wait: bool,
    tally: Arc<Tally>,
    wake: Wake,
    mut batch: Vec<Arc<Delivery>>,
) -> Result<Vec<HeldBack>, ApplyError> {
    batch.retain(|one| one.envelope.outbox_id.0 % 5 != 0 || !seeded(Bug::SwallowsEvents));
    let processing = Processing::begin(NAME, &mut batch);
    let events: Vec<_> = batch
        .iter()
        .map(|one| (Arrival::new(&one.envelope, &one.first_place, aggregates_wait), &one.event))
        .collect();
    let accepted = processing.run(apply_orders(&db, NAME, &topic, &events), Accepted::is_new).await?;
    crash_if_armed(CrashPoint::AfterCommitBeforeOffset, || {
        format!("{} event(s) took effect, no offset is committed", batch.len())
    });
    wake.wake();
    tally.applied(&batch, accepted.iter().map(Accepted::is_new), print_records);
    Ok(HeldBack::of(accepted.iter().map(Accepted::waits)))
}

/// Notes that what follows `record` in its aggregate waits.
pub(crate) async fn gave_up(db: DatabaseConnection, record: Received) -> Result<(), ApplyError> {
    let (place, outbox_id) = (record.first_place(), record.outbox_id());
    let noted = inbox::note_dead_letter(&db, NAME, record.aggregate(), &place, outbox_id).await;
    noted.map_err(|error| Error::from(error).into())
}
