//! Tables `reservations` and `reservation_lines`.

use std::collections::{BTreeMap, BTreeSet};

use events::OrderId;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};

use crate::domain::Decision;

use super::statement;

const BEGIN: &str = "
insert into reservations (order_id, status, version)
select o.order_id, 'deciding', 1
  from unnest($1::text[]) with ordinality as o(order_id, position)
 order by o.position
    on conflict do nothing
returning order_id";

const FINISH: &str = "
update reservations
   set status = decided.status
  from unnest($1::text[], $2::text[]) as decided(order_id, status)
 where reservations.order_id = decided.order_id";

const LINES: &str = "
insert into reservation_lines (order_id, sku, quantity)
select * from unnest($1::text[], $2::text[], $3::integer[])";

/// Takes those of `orders` that nobody has decided on, in the order of their ids, and returns them. Each is locked
/// until the transaction ends, and must be [finished](finish) in it.
pub(crate) async fn begin(
    tx: &DatabaseTransaction,
    orders: BTreeSet<OrderId>,
) -> Result<BTreeSet<String>, DbErr> {
    let ids: Vec<String> = orders.iter().map(ToString::to_string).collect();
    let rows = tx.query_all_raw(statement(BEGIN, [ids.into()])).await?;
    rows.iter().map(|row| row.try_get_by_index(0)).collect()
}

/// Stores what was decided.
pub(crate) async fn finish(
    tx: &DatabaseTransaction,
    decisions: &BTreeMap<String, Decision>,
) -> Result<(), DbErr> {
    if decisions.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = decisions.keys().cloned().collect();
    let statuses: Vec<String> = decisions.values().map(|decision| decision.status().to_owned()).collect();
    tx.execute_raw(statement(FINISH, [ids.into(), statuses.into()])).await?;

    let (mut orders, mut skus, mut quantities) = (Vec::new(), Vec::new(), Vec::new());
    for (id, decision) in decisions {
        if let Decision::Reserved(lines) = decision {
            for line in lines {
                orders.push(id.clone());
                skus.push(line.sku.0.clone());
                quantities.push(line.quantity);
            }
        }
    }
    tx.execute_raw(statement(LINES, [orders.into(), skus.into(), quantities.into()])).await.map(drop)
}
