//! Lists orders, newest first, a page at a time.

use events::OrderId;
use sea_orm::DatabaseConnection;

use crate::{Error, domain::Order, store};

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Newest first.
    pub orders: Vec<Order>,
    /// Where the next page begins: below this id. None on the last page.
    pub next: Option<OrderId>,
}

/// At most `size` orders with ids below `before`, of `customer` if one is named.
///
/// # Errors
/// The database's.
pub async fn list_orders(
    db: &DatabaseConnection,
    customer: Option<&str>,
    before: Option<OrderId>,
    size: u64,
) -> Result<Page, Error> {
    // One more than asked for tells whether there is a next page.
    let mut orders = store::orders::list(db, customer, before, size + 1).await?;
    let more = orders.len() as u64 > size;
    orders.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    let next = orders.last().filter(|_| more).map(|order| order.saga.order_id);
    Ok(Page { orders, next })
}
