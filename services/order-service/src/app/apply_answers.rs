//! Applies a batch of answers of stock and payment to the orders: inbox, orders, history and outbox in one
//! transaction.

use events::{Envelope, Event};
use inbox::{Accepted, Arrival};
use runtime::seeded::{Bug, seeded};
use sea_orm::{DatabaseConnection, DatabaseTransaction, TransactionTrait};

use crate::{
    Error,
    app::settle::{Moved, settle},
    domain::Input,
    store,
};

/// Applies those of `batch` that `consumer` has not applied before, and appends what follows for `topic`. Returns,
/// position by position, what became of the event.
///
/// Locks in one order: letters that are waited behind, processed ids, orders by id; so two batches
/// never wait in a circle.
///
/// # Errors
/// The database's; an answer about an order that there is not, or over another amount. Nothing of the batch has any
/// effect then.
pub async fn apply_answers(
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
    let before = store::sagas::lock(tx, orders).await?;
    let mut after = before.clone();
    let mut moved = Vec::new();
    for (envelope, event) in events {
        if seeded(Bug::IgnoresCapture) && matches!(event, Event::PaymentCaptured(_)) {
            continue;
        }
        let order_id = event.order_id();
        let locked = after.get_mut(&order_id).ok_or_else(|| Error::NoOrder(order_id.to_string()))?;
        let steps = locked.saga.apply(Input::Answer(event))?;
        moved.push(Moved {
            order_id,
            steps,
            cause: envelope.event_type.clone(),
            event_id: Some(envelope.event_id.0),
            trace: envelope.trace.clone(),
        });
    }
    settle(tx, topic, &before, &after, &moved).await
}
