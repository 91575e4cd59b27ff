//! Cancels orders that wait too long for an answer.

use sea_orm::{DatabaseConnection, TransactionTrait};

use crate::{
    Error,
    app::settle::{Moved, settle},
    domain::Input,
    store,
};

/// At most so many orders a transaction.
const BATCH: i64 = 100;

/// Cancels at most a hundred pending orders whose answer is overdue, appends `order.cancelled` for `topic`, and
/// returns how many. Safe with any number of sweepers: each skips what another has locked.
///
/// # Errors
/// The database's; nothing has changed then.
pub async fn expire_orders(db: &DatabaseConnection, topic: &str) -> Result<usize, Error> {
    let tx = db.begin().await?;
    let before = store::sagas::lock_overdue(&tx, BATCH).await?;
    let mut after = before.clone();
    let mut moved = Vec::new();
    for (order_id, locked) in &mut after {
        let steps = locked.saga.apply(Input::TimedOut)?;
        let (order_id, cause, trace) = (*order_id, "timed_out".to_owned(), locked.trace.clone());
        moved.push(Moved { order_id, steps, cause, event_id: None, trace });
    }
    settle(&tx, topic, &before, &after, &moved).await?;
    tx.commit().await?;
    Ok(moved.len())
}
