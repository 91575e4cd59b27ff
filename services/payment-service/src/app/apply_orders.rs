//! Applies a batch of events of orders to the payments: inbox, payments and the intents to call, in one
//! transaction. No call is made here.

use events::{Envelope, Event};
use inbox::{Accepted, Arrival};
use sea_orm::{DatabaseConnection, DatabaseTransaction, TransactionTrait};

use crate::{Error, domain::Payment, store};

/// Applies those of `batch` that `consumer` has not applied before. Returns, position by position, what
/// became of the event.
///
/// Locks in one order: letters that are waited behind, processed ids, payments by order; so two batches
/// never wait in a circle.
///
/// # Errors
/// The database's, or an event that cannot be; nothing of the batch has any effect then.
pub async fn apply_orders(
    db: &DatabaseConnection,
    consumer: &str,
    batch: &[(Arrival<'_>, &Event)],
) -> Result<Vec<Accepted>, Error> {
    let tx = db.begin().await?;
    let arrivals: Vec<Arrival<'_>> = batch.iter().map(|(arrival, _)| *arrival).collect();
    let accepted = inbox::accept(&tx, consumer, &arrivals).await?;
    let new = batch.iter().zip(&accepted).filter(|(_, accepted)| **accepted == Accepted::New);
    let events: Vec<(&Envelope, &Event)> =
        new.map(|((arrival, event), _)| (arrival.envelope, *event)).collect();
    if !events.is_empty() {
        apply(&tx, &events).await?;
    }
    tx.commit().await?;
    Ok(accepted)
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
                withdraw(tx, payment).await?;
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

/// A payment that is to be undone before the provider was asked for it is not asked for. Else, behind a provider that
/// was away for long, orders that were cancelled meanwhile are worked off before those that can still be served, which
/// so are cancelled, too.
async fn withdraw(tx: &DatabaseTransaction, payment: &mut Payment) -> Result<(), Error> {
    if let Some(call) = payment.wasted()
        && store::calls::withdraw(tx, payment.order_id, call).await?
    {
        payment.withdraw();
    }
    Ok(())
}
