//! Puts more on the shelf, once per idempotency key.

use events::Sku;
use sea_orm::{DatabaseConnection, TransactionTrait};

use crate::{Error, store};

/// Adds `quantity` of `sku` and returns how many are available then. A key that was used before for the same
/// changes nothing.
///
/// # Errors
/// [`Error::NoSku`]; [`Error::KeyReused`] when the key was used for something else; the database. Nothing has
/// changed then.
pub async fn restock(db: &DatabaseConnection, sku: &Sku, quantity: i32, key: &str) -> Result<i64, Error> {
    let tx = db.begin().await?;
    // The stock's row first, as everywhere; it also makes two calls with one key wait for each other.
    let Some(available) = store::stock::lock(&tx, [sku.clone()].into()).await?.get(sku).copied() else {
        return Err(Error::NoSku(sku.clone()));
    };
    if !store::restocks::insert(&tx, key, sku, quantity).await? {
        let same = store::restocks::find(&tx, key).await? == Some((sku.clone(), quantity));
        return if same { Ok(available) } else { Err(Error::KeyReused) };
    }
    store::stock::add(&tx, sku, quantity).await?;
    tx.commit().await?;
    Ok(available + i64::from(quantity))
}
