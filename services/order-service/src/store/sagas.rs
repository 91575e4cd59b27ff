//! The part of `orders` that moves, and table `order_history`.

use std::collections::{BTreeMap, BTreeSet};

use events::{CancelReason, OrderId};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement, Value};
use telemetry::spans;
use tracing::Instrument;
use uuid::Uuid;

use crate::domain::{OrderStatus, PaymentAnswer, Saga, Step, StockAnswer};

const LOCK: &str = "
select id, total_minor, currency, status, stock, payment, cancel_reason, version, trace::text,
       extract(epoch from clock_timestamp() - created_at)::float8
  from orders where id = any ($1::bigint[]) order by id for update";

/// Rows that another sweeper has are its own to expire.
const LOCK_OVERDUE: &str = "
select id, total_minor, currency, status, stock, payment, cancel_reason, version, trace::text,
       extract(epoch from clock_timestamp() - created_at)::float8
  from orders where status = 'pending' and answer_due_at < now() order by id limit $1 for update skip locked";

const SAVE: &str = "
update orders
   set status = s.status, stock = s.stock, payment = s.payment, version = s.version,
       cancel_reason = nullif(s.cancel_reason, '')
  from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
       as s(id, status, stock, payment, version, cancel_reason)
 where orders.id = s.id";

const HISTORY: &str = "
insert into order_history (order_id, version, from_status, to_status, cause, event_id)
select h.order_id, h.version, h.from_status, h.to_status, h.cause, nullif(h.event_id, '')::uuid
  from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[])
       as h(order_id, version, from_status, to_status, cause, event_id)";

/// Of each kind the oldest, by an index each. An order's wait for answers begins with it.
const OLDEST_OPEN: &str = "
select greatest(
       (select extract(epoch from now() - created_at) from orders
         where status = 'pending' order by answer_due_at limit 1),
       (select extract(epoch from now() - created_at) from orders
         where status = 'confirmed' order by created_at limit 1),
       0)::float8";

/// A saga under its row's lock, with the trace that the order began in and how old it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Locked {
    pub(crate) saga: Saga,
    pub(crate) trace: BTreeMap<String, String>,
    pub(crate) age_s: f64,
}

/// A step, with what caused it.
pub(crate) struct Cause<'a> {
    pub(crate) step: &'a Step,
    pub(crate) order_id: OrderId,
    pub(crate) cause: String,
    pub(crate) event_id: Option<Uuid>,
}

/// Locks those of `orders` that there are, in the order of their ids.
pub(crate) async fn lock(
    tx: &DatabaseTransaction,
    orders: BTreeSet<OrderId>,
) -> Result<BTreeMap<OrderId, Locked>, DbErr> {
    let ids: Vec<i64> = orders.into_iter().map(|id| id.0).collect();
    let rows = tx
        .query_all_raw(statement(LOCK, [ids.into()]))
        .instrument(spans::statement("SELECT", "orders"))
        .await?;
    rows.iter().map(locked).map(|locked| locked.map(|one| (one.saga.order_id, one))).collect()
}

/// Locks at most `limit` pending orders that have waited too long.
pub(crate) async fn lock_overdue(
    tx: &DatabaseTransaction,
    limit: i64,
) -> Result<BTreeMap<OrderId, Locked>, DbErr> {
    let rows = tx.query_all_raw(statement(LOCK_OVERDUE, [limit.into()])).await?;
    rows.iter().map(locked).map(|locked| locked.map(|one| (one.saga.order_id, one))).collect()
}

/// The age in seconds of the oldest order that is not final; 0 if there is none.
pub(crate) async fn oldest_open_age_s(db: &impl ConnectionTrait) -> Result<f64, DbErr> {
    let row = db.query_one_raw(statement(OLDEST_OPEN, [])).await?;
    row.map_or(Ok(0.0), |row| row.try_get_by_index(0))
}

/// Stores `sagas`, whose rows are locked.
pub(crate) async fn save(tx: &DatabaseTransaction, sagas: Vec<&Saga>) -> Result<(), DbErr> {
    if sagas.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = sagas.iter().map(|saga| saga.order_id.0).collect();
    let statuses: Vec<String> = sagas.iter().map(|saga| saga.status.as_str().to_owned()).collect();
    let stocks: Vec<String> = sagas.iter().map(|saga| saga.stock.as_str().to_owned()).collect();
    let payments: Vec<String> = sagas.iter().map(|saga| saga.payment.as_str().to_owned()).collect();
    let versions: Vec<i64> = sagas.iter().map(|saga| saga.version).collect();
    // The library's arrays hold no nulls: an empty text stands for one.
    let reasons: Vec<String> = sagas
        .iter()
        .map(|saga| saga.cancel_reason.map(|reason| reason.as_str().to_owned()).unwrap_or_default())
        .collect();
    let values: [Value; 6] =
        [ids.into(), statuses.into(), stocks.into(), payments.into(), versions.into(), reasons.into()];
    tx.execute_raw(statement(SAVE, values)).instrument(spans::statement("UPDATE", "orders")).await.map(drop)
}

/// Writes the steps down.
pub(crate) async fn note(tx: &DatabaseTransaction, causes: &[Cause<'_>]) -> Result<(), DbErr> {
    if causes.is_empty() {
        return Ok(());
    }
    let orders: Vec<i64> = causes.iter().map(|one| one.order_id.0).collect();
    let versions: Vec<i64> = causes.iter().map(|one| one.step.version).collect();
    let from: Vec<String> = causes.iter().map(|one| one.step.from.as_str().to_owned()).collect();
    let to: Vec<String> = causes.iter().map(|one| one.step.to.as_str().to_owned()).collect();
    let why: Vec<String> = causes.iter().map(|one| one.cause.clone()).collect();
    let events: Vec<String> =
        causes.iter().map(|one| one.event_id.map(|id| id.to_string()).unwrap_or_default()).collect();
    let values: [Value; 6] =
        [orders.into(), versions.into(), from.into(), to.into(), why.into(), events.into()];
    tx.execute_raw(statement(HISTORY, values))
        .instrument(spans::statement("INSERT", "order_history"))
        .await
        .map(drop)
}

fn locked(row: &QueryResult) -> Result<Locked, DbErr> {
    let order_id = OrderId(row.try_get_by_index(0)?);
    let unknown = |what: &str, found: &str| DbErr::Type(format!("{order_id} has the unknown {what} {found}"));
    let text = |index: usize| row.try_get_by_index::<String>(index);
    let (status, stock, payment) = (text(3)?, text(4)?, text(5)?);
    let reason: Option<String> = row.try_get_by_index(6)?;
    let cancel_reason = reason
        .map(|reason| CancelReason::parse(&reason).ok_or_else(|| unknown("cancel reason", &reason)))
        .transpose()?;
    let saga = Saga {
        order_id,
        total_minor: row.try_get_by_index(1)?,
        currency: text(2)?,
        status: OrderStatus::parse(&status).ok_or_else(|| unknown("status", &status))?,
        stock: StockAnswer::parse(&stock).ok_or_else(|| unknown("stock", &stock))?,
        payment: PaymentAnswer::parse(&payment).ok_or_else(|| unknown("payment", &payment))?,
        cancel_reason,
        version: row.try_get_by_index(7)?,
    };
    // Only this service writes it; a trace that cannot be read is worth no failure.
    let trace = serde_json::from_str(&text(8)?).unwrap_or_default();
    Ok(Locked { saga, trace, age_s: row.try_get_by_index(9)? })
}

fn statement(sql: &str, values: impl IntoIterator<Item = Value>) -> Statement {
    Statement::from_sql_and_values(DbBackend::Postgres, sql, values)
}
