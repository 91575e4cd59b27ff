//! What the provider answered, in a transaction of its own.

use std::time::Duration;

use outbox::NewEvent;
use sea_orm::{DatabaseConnection, TransactionTrait};

use crate::{
    Error,
    domain::Outcome,
    store::{self, calls::Call},
};

/// Applies the provider's definite answer to `call`: the payment, the next call if there is one, and the event
/// for `topic`. False if another worker has applied it before.
///
/// # Errors
/// The database's; an answer that cannot be. Nothing has changed then.
pub async fn settle_call(
    db: &DatabaseConnection,
    topic: &str,
    call: &Call,
    outcome: &Outcome,
) -> Result<bool, Error> {
    let tx = db.begin().await?;
    let mut payments = store::payments::lock(&tx, [call.order_id].into()).await?;
    let payment = payments.get_mut(&call.order_id).ok_or(Error::NoPayment(call.order_id))?;
    if !store::calls::done(&tx, call.id).await? {
        return Ok(false);
    }
    let next = payment.settle(outcome)?;
    store::payments::update(&tx, payment).await?;
    if let Some(operation) = next.call {
        store::calls::insert(&tx, payment, operation, &call.trace).await?;
    }
    if let Some(event) = next.event {
        outbox::append(&tx, NewEvent::of(topic, &event, call.trace.clone())?).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Puts `call` off by `delay`: the provider gave no definite answer.
///
/// # Errors
/// The database's.
pub async fn postpone_call(
    db: &DatabaseConnection,
    call: &Call,
    delay: Duration,
    why: &str,
) -> Result<(), Error> {
    Ok(store::calls::postpone(db, call.id, delay, why).await?)
}

/// Sets `call` aside for a person: the provider's answer makes no sense, and asking again gives the same.
///
/// # Errors
/// The database's.
pub async fn give_up_call(db: &DatabaseConnection, call: &Call, why: &str) -> Result<(), Error> {
    Ok(store::calls::stick(db, call.id, why).await?)
}
