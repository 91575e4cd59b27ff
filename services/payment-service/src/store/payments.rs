//! Table `payments`.

use std::collections::{BTreeMap, BTreeSet};

use events::OrderId;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, Value};
use telemetry::spans;
use tracing::Instrument;

use crate::domain::{Payment, Status};

use super::{parse_id, statement};

const COLUMNS: &str =
    "order_id, amount_minor, currency, token, status, cancel_requested, authorization_id, version";

const UPDATE: &str = "
update payments
   set status = $2, cancel_requested = $3, authorization_id = $4, version = $5, updated_at = now()
 where order_id = $1";

const INSERT: &str = "
insert into payments (order_id, amount_minor, currency, token, status, version) values ($1, $2, $3, $4, $5, $6)";

/// Locks those of `orders` that have a payment, in one order for every batch.
pub(crate) async fn lock(
    tx: &DatabaseTransaction,
    orders: BTreeSet<OrderId>,
) -> Result<BTreeMap<OrderId, Payment>, DbErr> {
    let ids: Vec<String> = orders.iter().map(ToString::to_string).collect();
    let sql = format!(
        "select {COLUMNS} from payments where order_id = any ($1::text[]) order by order_id for update"
    );
    let rows = tx
        .query_all_raw(statement(&sql, [ids.into()]))
        .instrument(spans::statement("SELECT", "payments"))
        .await?;
    rows.iter().map(payment).map(|payment| payment.map(|one| (one.order_id, one))).collect()
}

/// One order's payment.
pub(crate) async fn find(db: &impl ConnectionTrait, id: OrderId) -> Result<Option<Payment>, DbErr> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1");
    let row = db.query_one_raw(statement(&sql, [id.to_string().into()])).await?;
    row.as_ref().map(payment).transpose()
}

/// Stores a new payment.
pub(crate) async fn insert(tx: &DatabaseTransaction, payment: &Payment) -> Result<(), DbErr> {
    let values: [Value; 6] = [
        payment.order_id.to_string().into(),
        payment.amount_minor.into(),
        payment.currency.clone().into(),
        payment.token.clone().into(),
        payment.status.as_str().into(),
        payment.version.into(),
    ];
    tx.execute_raw(statement(INSERT, values))
        .instrument(spans::statement("INSERT", "payments"))
        .await
        .map(drop)
}

/// Stores what has changed; the row is locked.
pub(crate) async fn update(tx: &DatabaseTransaction, payment: &Payment) -> Result<(), DbErr> {
    let values: [Value; 5] = [
        payment.order_id.to_string().into(),
        payment.status.as_str().into(),
        payment.cancel_requested.into(),
        payment.authorization_id.into(),
        payment.version.into(),
    ];
    tx.execute_raw(statement(UPDATE, values))
        .instrument(spans::statement("UPDATE", "payments"))
        .await
        .map(drop)
}

fn payment(row: &QueryResult) -> Result<Payment, DbErr> {
    let order_id = parse_id(&row.try_get_by_index::<String>(0)?)?;
    let status: String = row.try_get_by_index(4)?;
    Ok(Payment {
        order_id,
        amount_minor: row.try_get_by_index(1)?,
        currency: row.try_get_by_index(2)?,
        token: row.try_get_by_index(3)?,
        status: Status::parse(&status)
            .ok_or_else(|| DbErr::Type(format!("{order_id} has the unknown status {status}")))?,
        cancel_requested: row.try_get_by_index(5)?,
        authorization_id: row.try_get_by_index(6)?,
        version: row.try_get_by_index(7)?,
    })
}
