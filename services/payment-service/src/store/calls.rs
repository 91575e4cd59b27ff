//! Table `gateway_calls`: the second outbox.

use std::{collections::BTreeMap, time::Duration};

use events::OrderId;
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, Value};
use serde_json::{Value as Json, json};
use telemetry::spans;
use tracing::Instrument;

use crate::domain::{Operation, Payment};

use super::{parse_id, statement};

/// A call to make, or to make again: always with this key and these bytes.
#[derive(Debug, Clone)]
pub struct Call {
    /// The row.
    pub id: i64,
    /// Whose payment.
    pub order_id: OrderId,
    /// What is asked.
    pub operation: Operation,
    /// Stored before the first try.
    pub idempotency_key: String,
    /// The body.
    pub request: Json,
    /// Of the event that caused it.
    pub trace: BTreeMap<String, String>,
    /// This try counted.
    pub attempts: i32,
    /// Since the first try.
    pub age: Duration,
}

const INSERT: &str = "
insert into gateway_calls (order_id, operation, idempotency_key, request, trace) values ($1, $2, $3, $4, $5)";

const TAKE: &str = "
update gateway_calls
   set attempts = attempts + 1, first_tried_at = coalesce(first_tried_at, clock_timestamp()),
       due_at = clock_timestamp() + $1 * interval '1 millisecond'
 where id = (select id from gateway_calls
              where state = 'pending' and due_at <= clock_timestamp()
              order by due_at limit 1 for update skip locked)
returning id, order_id, operation, idempotency_key, request, trace::text, attempts,
          (extract(epoch from clock_timestamp() - first_tried_at) * 1000)::bigint";

/// A worker that takes the call meanwhile has noted its try before it makes it, and then it stays.
const WITHDRAW: &str = "
delete from gateway_calls where idempotency_key = $1 and state = 'pending' and first_tried_at is null";

const DONE: &str =
    "update gateway_calls set state = 'done', last_error = null where id = $1 and state = 'pending'";

const POSTPONE: &str = "
update gateway_calls
   set due_at = clock_timestamp() + $2 * interval '1 millisecond', last_error = $3
 where id = $1 and state = 'pending'";

const STICK: &str =
    "update gateway_calls set state = 'stuck', last_error = $2 where id = $1 and state = 'pending'";

/// Writes the intent. One key an operation and order: each is asked for once.
pub(crate) async fn insert(
    tx: &DatabaseTransaction,
    payment: &Payment,
    operation: Operation,
    trace: &BTreeMap<String, String>,
) -> Result<(), DbErr> {
    let order_id = payment.order_id.to_string();
    let mut request = json!({
        "reference": order_id,
        "amount_minor": payment.amount_minor,
        "currency": payment.currency,
    });
    match operation {
        Operation::Authorize => request["token"] = json!(payment.token),
        Operation::Capture | Operation::Void | Operation::Refund => {
            request["authorization_id"] = json!(payment.authorization_id);
        }
    }
    let values: [Value; 5] = [
        order_id.clone().into(),
        operation.as_str().into(),
        key(payment.order_id, operation).into(),
        request.into(),
        json!(trace).into(),
    ];
    tx.execute_raw(statement(INSERT, values))
        .instrument(spans::statement("INSERT", "gateway_calls"))
        .await
        .map(drop)
}

/// Takes the call for `operation` back if nobody has tried it yet, and says whether.
pub(crate) async fn withdraw(
    tx: &DatabaseTransaction,
    order_id: OrderId,
    operation: Operation,
) -> Result<bool, DbErr> {
    let withdrawn = tx
        .execute_raw(statement(WITHDRAW, [key(order_id, operation).into()]))
        .instrument(spans::statement("DELETE", "gateway_calls"))
        .await?;
    Ok(withdrawn.rows_affected() > 0)
}

fn key(order_id: OrderId, operation: Operation) -> String {
    format!("{}:{order_id}:1", operation.as_str())
}

/// Takes the call that is due the longest, for `lease`.
pub(crate) async fn take(db: &DatabaseConnection, lease: Duration) -> Result<Option<Call>, DbErr> {
    let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let Some(row) = db.query_one_raw(statement(TAKE, [lease.into()])).await? else { return Ok(None) };
    let operation: String = row.try_get_by_index(2)?;
    let trace: String = row.try_get_by_index(5)?;
    let age: i64 = row.try_get_by_index(7)?;
    Ok(Some(Call {
        id: row.try_get_by_index(0)?,
        order_id: parse_id(&row.try_get_by_index::<String>(1)?)?,
        operation: Operation::parse(&operation)
            .ok_or_else(|| DbErr::Type(format!("unknown operation {operation}")))?,
        idempotency_key: row.try_get_by_index(3)?,
        request: row.try_get_by_index(4)?,
        // Only this service writes it; a trace that cannot be read is worth no failure.
        trace: serde_json::from_str(&trace).unwrap_or_default(),
        attempts: row.try_get_by_index(6)?,
        age: Duration::from_millis(age.unsigned_abs()),
    }))
}

/// Notes that the call has its answer; false if it had one before.
pub(crate) async fn done(tx: &DatabaseTransaction, id: i64) -> Result<bool, DbErr> {
    Ok(tx
        .execute_raw(statement(DONE, [id.into()]))
        .instrument(spans::statement("UPDATE", "gateway_calls"))
        .await?
        .rows_affected()
        > 0)
}

/// Makes the call due again after `delay`.
pub(crate) async fn postpone(
    db: &DatabaseConnection,
    id: i64,
    delay: Duration,
    why: &str,
) -> Result<(), DbErr> {
    let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
    let values: [Value; 3] = [id.into(), delay.into(), why.into()];
    db.execute_raw(statement(POSTPONE, values)).await.map(drop)
}

/// Sets the call aside for a person.
pub(crate) async fn stick(db: &DatabaseConnection, id: i64, why: &str) -> Result<(), DbErr> {
    db.execute_raw(statement(STICK, [id.into(), why.into()])).await.map(drop)
}
