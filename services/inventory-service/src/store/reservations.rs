//! Tables `reservations` and `reservation_lines`.

use std::collections::{BTreeMap, BTreeSet};

use events::{OrderId, ReservedLine, Sku};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};
use telemetry::spans;
use tracing::Instrument;

use crate::domain::{Reservation, Status};

use super::statement;

pub(crate) type Reservations = BTreeMap<OrderId, Reservation>;

const BEGIN: &str = "
insert into reservations (order_id, status, version)
select o.order_id, 'new', 0
  from unnest($1::text[]) with ordinality as o(order_id, position)
 order by o.position
    on conflict do nothing";

const LOCK: &str = "
select order_id, status, version from reservations where order_id = any ($1::text[]) order by order_id for update";

const FIND_LINES: &str = "
select order_id, sku, quantity from reservation_lines where order_id = any ($1::text[]) order by order_id, sku";

const SAVE: &str = "
update reservations
   set status = r.status, version = r.version
  from unnest($1::text[], $2::text[], $3::bigint[]) as r(order_id, status, version)
 where reservations.order_id = r.order_id";

const SAVE_LINES: &str = "
insert into reservation_lines (order_id, sku, quantity)
select * from unnest($1::text[], $2::text[], $3::integer[])";

const FORGET: &str = "delete from reservations where order_id = any ($1::text[]) and status = 'new'";

/// Locks the reservations of `orders`, making those that are not there, in one order for every batch. Must be
/// followed by [`save`] in the same transaction.
pub(crate) async fn lock(tx: &DatabaseTransaction, orders: BTreeSet<OrderId>) -> Result<Reservations, DbErr> {
    // By the text, as the database sorts it in LOCK.
    let ids: BTreeSet<String> = orders.iter().map(ToString::to_string).collect();
    let ids: Vec<String> = ids.into_iter().collect();
    tx.execute_raw(statement(BEGIN, [ids.clone().into()]))
        .instrument(spans::statement("INSERT", "reservations"))
        .await?;
    let mut found = Reservations::new();
    for row in tx
        .query_all_raw(statement(LOCK, [ids.clone().into()]))
        .instrument(spans::statement("SELECT", "reservations"))
        .await?
    {
        let order_id = parse_id(&row.try_get_by_index::<String>(0)?)?;
        let status: String = row.try_get_by_index(1)?;
        let status = Status::parse(&status)
            .ok_or_else(|| DbErr::Type(format!("{order_id} has the unknown status {status}")))?;
        let version = row.try_get_by_index(2)?;
        found.insert(order_id, Reservation { order_id, status, version, lines: Vec::new() });
    }
    for row in tx
        .query_all_raw(statement(FIND_LINES, [ids.into()]))
        .instrument(spans::statement("SELECT", "reservation_lines"))
        .await?
    {
        let order_id = parse_id(&row.try_get_by_index::<String>(0)?)?;
        if let Some(reservation) = found.get_mut(&order_id) {
            let (sku, quantity) = (Sku(row.try_get_by_index(1)?), row.try_get_by_index(2)?);
            reservation.lines.push(ReservedLine { sku, quantity });
        }
    }
    Ok(found)
}

/// Stores what differs from `before`, and forgets what is still new.
pub(crate) async fn save(
    tx: &DatabaseTransaction,
    before: &Reservations,
    after: &Reservations,
) -> Result<(), DbErr> {
    let (mut ids, mut statuses, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of, mut skus, mut quantities) = (Vec::new(), Vec::new(), Vec::new());
    let mut untouched: Vec<String> = Vec::new();
    for (order_id, now) in after {
        let was = before.get(order_id);
        if now.status == Status::New {
            untouched.push(order_id.to_string());
        } else if was != Some(now) {
            ids.push(order_id.to_string());
            statuses.push(now.status.as_str().to_owned());
            versions.push(now.version);
        }
        for line in now.lines.iter().filter(|_| was.is_none_or(|was| was.lines.is_empty())) {
            of.push(order_id.to_string());
            skus.push(line.sku.0.clone());
            quantities.push(line.quantity);
        }
    }
    tx.execute_raw(statement(SAVE, [ids.into(), statuses.into(), versions.into()]))
        .instrument(spans::statement("UPDATE", "reservations"))
        .await?;
    tx.execute_raw(statement(SAVE_LINES, [of.into(), skus.into(), quantities.into()]))
        .instrument(spans::statement("INSERT", "reservation_lines"))
        .await?;
    if !untouched.is_empty() {
        tx.execute_raw(statement(FORGET, [untouched.into()])).await?;
    }
    Ok(())
}

fn parse_id(text: &str) -> Result<OrderId, DbErr> {
    text.parse().map_err(|error: events::IdError| DbErr::Type(error.to_string()))
}
