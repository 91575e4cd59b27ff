//! Applies a batch of events of orders to the payments: inbox, payments and the intents to call, in one
//! transaction. No call is made here.

use events::{Envelope, Event};
use sea_orm::{DatabaseConnection, DatabaseTransaction, TransactionTrait};

use crate::{Error, domain::Payment, store};

/// Applies those of `batch` that `consumer` has not applied before. Returns, position by position, whether the
/// event was new.
///
/// Locks in one order: processed ids, payments by order; so two batches never wait in a circle.
///
/// # Errors
/// The database's, or an event that cannot be; nothing of the batch has any effect then.
pub async fn apply_orders(
    db: &DatabaseConnection,
    consumer: &str,
    batch: &[(&Envelope, &Event)],
) -> Result<Vec<bool>, Error> {
    let tx = db.begin().await?;
    let envelopes: Vec<&Envelope> = batch.iter().map(|(envelope, _)| *envelope).collect();
    let new = inbox::accept(&tx, consumer, &envelopes).await?;
    let events: Vec<(&Envelope, &Event)> =
        batch.iter().zip(&new).filter(|(_, new)| **new).map(|(event, _)| *event).collect();
    if !events.is_empty() {
        apply(&tx, &events).await?;
    }
    tx.commit().await?;
    Ok(new)
}

async fn apply(tx: &DatabaseTransaction, events: &[(&Envelope, &Event)]) -> Result<(), Error> {
    let orders = events.iter().map(|(_, event)| event.order_id()).collect();
    let mut payments = store::payments::lock(tx, orders).await?;
    for (envelope, event) in events {
        let order_id = event.order_id();
        let next = match payments.get_mut(&order_id) {
            Some(payment) => {
                let before = payment.clone();
                let next = payment.hear(event)?;
                if *payment != before {
                    store::payments::update(tx, payment).await?;
                }
                next
            }
            None => {
                let Some((payment, next)) = Payment::begin(event)? else { continue };
                store::payments::insert(tx, &payment).await?;
                payments.insert(order_id, payment);
                next
            }
        };
        if let (Some(operation), Some(payment)) = (next.call, payments.get(&order_id)) {
            store::calls::insert(tx, payment, operation, &envelope.trace).await?;
        }
    }
    Ok(())
}
