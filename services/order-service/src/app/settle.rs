//! The last steps of every use case that moves orders: store, note, append.

use std::{collections::BTreeMap, sync::LazyLock};

use events::OrderId;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use outbox::NewEvent;
use sea_orm::DatabaseTransaction;
use telemetry::{catalogue, metrics};
use uuid::Uuid;

use crate::{
    Error,
    domain::{Saga, Step},
    store::sagas::{self, Cause, Locked},
};

static MOVES: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::ORDER_MOVES));

static FINALS: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::seconds(&catalogue::ORDER_FINAL));

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
    tell(&causes, before);
    outbox::append_all(tx, events).await?;
    Ok(())
}

/// Counted before the commit: a transaction that is lost and made again counts twice.
fn tell(causes: &[Cause<'_>], before: &BTreeMap<OrderId, Locked>) {
    for cause in causes.iter().filter(|cause| cause.step.from != cause.step.to) {
        let status = [KeyValue::new("status", cause.step.to.as_str())];
        MOVES.add(1, &status);
        if let (true, Some(locked)) = (cause.step.to.is_final(), before.get(&cause.order_id)) {
            FINALS.record(locked.age_s, &status);
        }
    }
}
