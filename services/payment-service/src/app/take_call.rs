//! Takes the next call that is due.

use std::time::Duration;

use sea_orm::DatabaseConnection;

use crate::{Error, store, store::calls::Call};

/// Takes a call that is due, for at least `lease`: after that another worker makes it again, with the same key
/// and bytes. None if none is due.
///
/// # Errors
/// The database's.
pub async fn take_call(db: &DatabaseConnection, lease: Duration) -> Result<Option<Call>, Error> {
    Ok(store::calls::take(db, lease).await?)
}
