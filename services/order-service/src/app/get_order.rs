//! Finds one order.

use events::OrderId;
use sea_orm::DatabaseConnection;

use crate::{Error, domain::Order, store};

/// The order as it is now.
///
/// # Errors
/// [`Error::NoOrder`], or the database.
pub async fn get_order(db: &DatabaseConnection, id: OrderId) -> Result<Order, Error> {
    store::orders::find(db, id).await?.ok_or_else(|| Error::NoOrder(id.to_string()))
}
