//! Places an order: the order, its lines and its event in one transaction, once per idempotency key.

use std::time::Duration;

use sea_orm::{DatabaseConnection, TransactionTrait};

use crate::{
    Error,
    domain::{NewOrder, Order},
    store::{self, orders::Placing},
};

/// What placing an order came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The order.
    pub order: Order,
    /// The key had been used before, with the same body: nothing was stored now.
    pub replayed: bool,
}

/// Stores `new` and appends `order.created` for `topic`, or returns the order that the same request made before.
/// Without an answer of stock and payment within `answer_timeout` it will be cancelled.
///
/// # Errors
/// [`Error::KeyReused`] when the key belongs to another body; a sku that is not on the menu; the database.
/// Nothing is stored then, except that the outcome of a commit is unknown when the connection dies in it: the
/// same call again finds out.
pub async fn place_order(
    db: &DatabaseConnection,
    topic: &str,
    answer_timeout: Duration,
    new: NewOrder,
) -> Result<Placed, Error> {
    let key = new.idempotency_key().to_owned();
    let fingerprint = new.fingerprint();

    let tx = db.begin().await?;
    if let Some(made) = store::orders::find_by_key(&tx, &key).await? {
        return replay(made, &fingerprint);
    }
    let menu = store::menu::find(&tx, &new.skus()).await?;
    let priced = new.price(&menu)?;

    let trace = telemetry::context::current();
    let placing = Placing { key: &key, fingerprint: &fingerprint, answer_timeout, trace: &trace };
    let Some((id, created_at)) = store::orders::insert(&tx, &priced, &placing).await? else {
        // Another call with this key has committed since the look above.
        let made = store::orders::find_by_key(&tx, &key).await?;
        return made.map_or(Err(Error::KeyReused), |made| replay(made, &fingerprint));
    };
    let (order, event) = priced.place(id, created_at);
    store::order_lines::insert(&tx, &order).await?;
    let event = outbox::NewEvent::of(topic, &event, trace)?;
    outbox::append(&tx, event).await?;
    tx.commit().await?;
    Ok(Placed { order, replayed: false })
}

fn replay((order, made_of): (Order, Vec<u8>), fingerprint: &[u8]) -> Result<Placed, Error> {
    if made_of == fingerprint { Ok(Placed { order, replayed: true }) } else { Err(Error::KeyReused) }
}
