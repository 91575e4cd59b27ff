//! Cancels an order at the customer's wish.

use events::OrderId;
use sea_orm::{DatabaseConnection, TransactionTrait};

use crate::{
    Error,
    app::settle::{Moved, settle},
    domain::{Input, Order},
    store,
};

/// Cancels order `id`, appends `order.cancelled` for `topic`, and returns the order as it is then. An order that is
/// cancelled already stays as it is.
///
/// # Errors
/// [`Error::NoOrder`]; [`Error::Refused`] when it is completed; the database.
pub async fn cancel_order(db: &DatabaseConnection, topic: &str, id: OrderId) -> Result<Order, Error> {
    let tx = db.begin().await?;
    let before = store::sagas::lock(&tx, [id].into()).await?;
    let mut after = before.clone();
    let locked = after.get_mut(&id).ok_or_else(|| Error::NoOrder(id.to_string()))?;
    let steps = locked.saga.apply(Input::CancelRequested)?;
    // The order's own trace; the span that writes the event links to the call's.
    let trace = locked.trace.clone();
    let cause = "cancel_requested".to_owned();
    let moved = Moved { order_id: id, steps, cause, event_id: None, trace };
    settle(&tx, topic, &before, &after, &[moved]).await?;
    let order = store::orders::find(&tx, id).await?.ok_or_else(|| Error::NoOrder(id.to_string()))?;
    tx.commit().await?;
    Ok(order)
}
