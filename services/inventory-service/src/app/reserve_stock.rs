//! Reserves stock for a batch of new orders: inbox, reservations, stock and outbox in one transaction.

use std::collections::BTreeMap;

use events::{Envelope, Event, OrderCreated};
use outbox::NewEvent;
use sea_orm::{DatabaseConnection, DatabaseTransaction, TransactionTrait};

use crate::{
    Error,
    domain::{Decision, reserve},
    store,
};

/// Applies those of `batch` that `consumer` has not applied before, and appends an answer to each for `topic`.
/// Returns, position by position, whether the event was new.
///
/// Locks in one order: processed ids, orders by id, stock by sku; so two batches never wait in a circle.
///
/// # Errors
/// The database's; nothing of the batch has any effect then.
pub async fn reserve_stock(
    db: &DatabaseConnection,
    consumer: &str,
    topic: &str,
    batch: &[(&Envelope, &Event)],
) -> Result<Vec<bool>, Error> {
    let tx = db.begin().await?;
    let envelopes: Vec<&Envelope> = batch.iter().map(|(envelope, _)| *envelope).collect();
    let new = inbox::accept(&tx, consumer, &envelopes).await?;

    let orders: Vec<(&Envelope, &OrderCreated)> = batch
        .iter()
        .zip(&new)
        .filter(|(_, new)| **new)
        .filter_map(|((envelope, event), _)| match event {
            Event::OrderCreated(order) => Some((*envelope, order)),
            // Not for us to act on; noted as processed all the same.
            Event::StockReserved(_) | Event::StockRejected(_) => None,
        })
        .collect();
    if !orders.is_empty() {
        decide(&tx, topic, &orders).await?;
    }
    tx.commit().await?;
    Ok(new)
}

async fn decide(
    tx: &DatabaseTransaction,
    topic: &str,
    orders: &[(&Envelope, &OrderCreated)],
) -> Result<(), Error> {
    let ids = orders.iter().map(|(_, order)| order.order_id).collect();
    let skus = orders.iter().flat_map(|(_, order)| order.lines.iter().map(|line| line.sku.clone())).collect();
    let undecided = store::reservations::begin(tx, ids).await?;
    let before = store::stock::lock(tx, skus).await?;

    let mut levels = before.clone();
    let mut decisions: BTreeMap<String, Decision> = BTreeMap::new();
    let mut answers = Vec::with_capacity(orders.len());
    for (envelope, order) in orders {
        let id = order.order_id.to_string();
        if !undecided.contains(&id) || decisions.contains_key(&id) {
            tracing::warn!(
                order = id,
                event_id = %envelope.event_id,
                "another event has decided on this order before; nothing is reserved again"
            );
            continue;
        }
        let decision = reserve(order, &mut levels);
        answers.push(NewEvent::of(topic, &decision.event(order), envelope.trace.clone())?);
        decisions.insert(id, decision);
    }
    store::stock::set(tx, &before, &levels).await?;
    store::reservations::finish(tx, &decisions).await?;
    outbox::append_all(tx, answers).await?;
    Ok(())
}
