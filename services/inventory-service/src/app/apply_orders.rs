//! Applies a batch of events of orders to the stock: inbox, reservations, stock and outbox in one transaction.

use events::{Envelope, Event};
use inbox::{Accepted, Arrival};
use outbox::NewEvent;
use runtime::seeded::{Bug, seeded};
use sea_orm::{DatabaseConnection, DatabaseTransaction, TransactionTrait};

use crate::{Error, domain::Reservation, store};

/// Applies those of `batch` that `consumer` has not applied before, and appends an answer to each for `topic`.
/// Returns, position by position, what became of the event.
///
/// Locks in one order: letters that are waited behind, processed ids, orders by id, stock by sku; so two batches
/// never wait in a circle.
///
/// # Errors
/// The database's, or an event that cannot be; nothing of the batch has any effect then.
pub async fn apply_orders(
    db: &DatabaseConnection,
    consumer: &str,
    topic: &str,
    batch: &[(Arrival<'_>, &Event)],
) -> Result<Vec<Accepted>, Error> {
    let tx = db.begin().await?;
    let arrivals: Vec<Arrival<'_>> = batch.iter().map(|(arrival, _)| *arrival).collect();
    let accepted = inbox::accept(&tx, consumer, &arrivals).await?;

    let new = batch.iter().zip(&accepted).filter(|(_, accepted)| **accepted == Accepted::New);
    let events: Vec<(&Envelope, &Event)> =
        new.map(|((arrival, event), _)| (arrival.envelope, *event)).collect();
    if !events.is_empty() {
        apply(&tx, topic, &events).await?;
    }
    tx.commit().await?;
    Ok(accepted)
}

async fn apply(tx: &DatabaseTransaction, topic: &str, events: &[(&Envelope, &Event)]) -> Result<(), Error> {
    let orders = events.iter().map(|(_, event)| event.order_id()).collect();
    let before = store::reservations::lock(tx, orders).await?;
    let skus = skus(events, before.values());
    let levels = store::stock::lock(tx, skus).await?;

    let (mut after, mut levels_after) = (before.clone(), levels.clone());
    let mut answers = Vec::with_capacity(events.len());
    for (envelope, event) in events {
        let reservation = after.entry(event.order_id()).or_insert_with(|| Reservation::new(event.order_id()));
        let answer = reservation.apply(event, &mut levels_after)?;
        match answer {
            Some(answer) => answers.push(NewEvent::of(topic, &answer, envelope.trace.clone())?),
            None => tracing::debug!(
                order = %event.order_id(),
                event = envelope.event_type,
                status = reservation.status.as_str(),
                "changes nothing"
            ),
        }
    }
    if !seeded(Bug::LeavesShelf) {
        store::stock::set(tx, &levels, &levels_after).await?;
    }
    if seeded(Bug::AnswersTwice) {
        answers.extend_from_within(..);
    }
    store::reservations::save(tx, &before, &after).await?;
    outbox::append_all(tx, answers).await?;
    Ok(())
}

/// Every sku that the batch can touch: of the orders in it, and of what is set aside for them.
fn skus<'a>(
    events: &[(&Envelope, &Event)],
    reservations: impl Iterator<Item = &'a Reservation>,
) -> std::collections::BTreeSet<events::Sku> {
    let ordered = events.iter().flat_map(|(_, event)| match event {
        Event::OrderCreated(order) => order.lines.iter().map(|line| line.sku.clone()).collect(),
        _ => Vec::new(),
    });
    let reserved = reservations.flat_map(|reservation| reservation.lines.iter().map(|line| line.sku.clone()));
    ordered.chain(reserved).collect()
}
