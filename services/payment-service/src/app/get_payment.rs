//! Finds one order's payment.

use events::OrderId;
use sea_orm::DatabaseConnection;

use crate::{Error, domain::Payment, store};

/// The payment as it is now.
///
/// # Errors
/// [`Error::NoPayment`], or the database.
pub async fn get_payment(db: &DatabaseConnection, id: OrderId) -> Result<Payment, Error> {
    store::payments::find(db, id).await?.ok_or(Error::NoPayment(id))
}
