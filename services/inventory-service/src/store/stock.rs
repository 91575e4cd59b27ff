//! Table `stock`.

use std::collections::BTreeSet;

use events::Sku;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};
use telemetry::spans;
use tracing::Instrument;

use crate::domain::Levels;

use super::statement;

const LOCK: &str = "select sku, available from stock where sku = any ($1::text[]) order by sku for update";

const SET: &str = "
update stock
   set available = level.available
  from unnest($1::text[], $2::bigint[]) as level(sku, available)
 where stock.sku = level.sku";

const LIST: &str = "select sku, available from stock order by sku";

const FIND: &str = "select available from stock where sku = $1";

const ADD: &str = "update stock set available = available + $2 where sku = $1";

/// How many there are of each.
pub(crate) async fn list(db: &impl ConnectionTrait) -> Result<Levels, DbErr> {
    let rows = db.query_all_raw(statement(LIST, [])).await?;
    rows.iter().map(|row| Ok((Sku(row.try_get_by_index(0)?), row.try_get_by_index(1)?))).collect()
}

/// How many there are of one.
pub(crate) async fn find(db: &impl ConnectionTrait, sku: &Sku) -> Result<Option<i64>, DbErr> {
    let row = db.query_one_raw(statement(FIND, [sku.0.clone().into()])).await?;
    row.map(|row| row.try_get_by_index(0)).transpose()
}

/// Puts more on the shelf.
pub(crate) async fn add(tx: &DatabaseTransaction, sku: &Sku, quantity: i32) -> Result<(), DbErr> {
    tx.execute_raw(statement(ADD, [sku.0.clone().into(), i64::from(quantity).into()])).await.map(drop)
}

/// Locks the rows of `skus`, in the order of sku, and returns how many there are of each.
pub(crate) async fn lock(tx: &DatabaseTransaction, skus: BTreeSet<Sku>) -> Result<Levels, DbErr> {
    let skus: Vec<String> = skus.into_iter().map(|sku| sku.0).collect();
    let rows = tx
        .query_all_raw(statement(LOCK, [skus.into()]))
        .instrument(spans::statement("SELECT", "stock"))
        .await?;
    rows.iter().map(|row| Ok((Sku(row.try_get_by_index(0)?), row.try_get_by_index(1)?))).collect()
}

/// Stores those levels that differ from `before`. The rows are locked by the caller.
pub(crate) async fn set(tx: &DatabaseTransaction, before: &Levels, after: &Levels) -> Result<(), DbErr> {
    let (skus, levels): (Vec<String>, Vec<i64>) = after
        .iter()
        .filter(|(sku, level)| before.get(sku) != Some(level))
        .map(|(sku, level)| (sku.0.clone(), *level))
        .unzip();
    if skus.is_empty() {
        return Ok(());
    }
    tx.execute_raw(statement(SET, [skus.into(), levels.into()]))
        .instrument(spans::statement("UPDATE", "stock"))
        .await
        .map(drop)
}
