//! Table `restocks`.

use events::Sku;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};

use super::statement;

const INSERT: &str = "
insert into restocks (idempotency_key, sku, quantity) values ($1, $2, $3) on conflict do nothing";

const FIND: &str = "select sku, quantity from restocks where idempotency_key = $1";

/// Notes a delivery of goods; false if its key is taken.
pub(crate) async fn insert(
    tx: &DatabaseTransaction,
    key: &str,
    sku: &Sku,
    quantity: i32,
) -> Result<bool, DbErr> {
    let values = [key.into(), sku.0.clone().into(), quantity.into()];
    Ok(tx.execute_raw(statement(INSERT, values)).await?.rows_affected() > 0)
}

/// What was delivered under `key`.
pub(crate) async fn find(tx: &DatabaseTransaction, key: &str) -> Result<Option<(Sku, i32)>, DbErr> {
    let Some(row) = tx.query_one_raw(statement(FIND, [key.into()])).await? else { return Ok(None) };
    Ok(Some((Sku(row.try_get_by_index(0)?), row.try_get_by_index(1)?)))
}
