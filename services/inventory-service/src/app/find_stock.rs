//! Tells what is on the shelf.

use events::Sku;
use sea_orm::DatabaseConnection;

use crate::{Error, domain::Levels, store};

/// How many of `sku` are available.
///
/// # Errors
/// [`Error::NoSku`], or the database.
pub async fn get_stock(db: &DatabaseConnection, sku: &Sku) -> Result<i64, Error> {
    store::stock::find(db, sku).await?.ok_or_else(|| Error::NoSku(sku.clone()))
}

/// How many of each sku are available.
///
/// # Errors
/// The database's.
pub async fn list_stock(db: &DatabaseConnection) -> Result<Levels, Error> {
    Ok(store::stock::list(db).await?)
}
