//! The last steps of every use case that moves orders: store, note, append.

use std::collections::BTreeMap;

use events::OrderId;
use outbox::NewEvent;
use sea_orm::DatabaseTransaction;
use uuid::Uuid;

use crate::{
    Error,
    domain::{Saga, Step},
    store::sagas::{self, Cause, Locked},
};

/// Steps of one order, why they were taken, and the trace that they belong to.
pub(super) struct Moved {
    pub(super) order_id: OrderId,
    pub(super) steps: Vec<Step>,
    pub(super) cause: String,
    pub(super) event_id: Option<Uuid>,
    pub(super) trace: BTreeMap<String, String>,
}

/// Stores what differs from `before`, notes each step, and appends its event for `topic`.
pub(super) async fn settle(
    tx: &DatabaseTransaction,
    topic: &str,
    before: &BTreeMap<OrderId, Locked>,
    after: &BTreeMap<OrderId, Locked>,
    moved: &[Moved],
) -> Result<(), Error> {
    let changed: Vec<&Saga> = after
        .values()
        .filter(|one| before.get(&one.saga.order_id) != Some(one))
        .map(|one| &one.saga)
        .collect();
    sagas::save(tx, changed).await?;
    let mut causes = Vec::new();
    let mut events = Vec::new();
    for one in moved {
        for step in &one.steps {
            let (order_id, cause, event_id) = (one.order_id, one.cause.clone(), one.event_id);
            causes.push(Cause { step, order_id, cause, event_id });
            events.push(NewEvent::of(topic, &step.event, one.trace.clone())?);
        }
    }
    sagas::note(tx, &causes).await?;
    outbox::append_all(tx, events).await?;
    Ok(())
}
