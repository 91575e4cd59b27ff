//! Table `orders`.

use std::{collections::BTreeMap, time::Duration};

use events::{CancelReason, OrderId, OrderLine, Sku};
use sea_orm::{
    ActiveValue::{NotSet, Set},
    QueryOrder, QuerySelect,
    entity::prelude::*,
    sea_query::OnConflict,
};
use telemetry::spans;
use time::OffsetDateTime;
use tracing::Instrument;

use crate::domain::{Order, OrderStatus, PaymentAnswer, PricedOrder, Saga, StockAnswer};

use super::order_lines;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "orders")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub customer: String,
    pub status: String,
    pub total_minor: i64,
    pub currency: String,
    pub version: i64,
    pub idempotency_key: String,
    pub request_fingerprint: Vec<u8>,
    pub created_at: TimeDateTimeWithTimeZone,
    pub stock: String,
    pub payment: String,
    pub cancel_reason: Option<String>,
    pub answer_due_at: TimeDateTimeWithTimeZone,
    pub trace: Json,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(has_many = "super::order_lines::Entity")]
    Lines,
}

impl Related<order_lines::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Lines.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// How a new order is kept, beside what it says.
pub(crate) struct Placing<'a> {
    pub(crate) key: &'a str,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) answer_timeout: Duration,
    pub(crate) trace: &'a BTreeMap<String, String>,
}

/// Stores a new order, or does nothing and returns none if its idempotency key is taken; waits for a transaction
/// that is about to take it.
pub(crate) async fn insert(
    tx: &impl ConnectionTrait,
    order: &PricedOrder,
    placing: &Placing<'_>,
) -> Result<Option<(OrderId, OffsetDateTime)>, DbErr> {
    let row = ActiveModel {
        id: NotSet,
        customer: Set(order.customer.clone()),
        status: Set(OrderStatus::Pending.as_str().to_owned()),
        total_minor: Set(order.total_minor),
        currency: Set(order.currency.clone()),
        version: Set(1),
        idempotency_key: Set(placing.key.to_owned()),
        request_fingerprint: Set(placing.fingerprint.to_owned()),
        created_at: NotSet,
        stock: Set(StockAnswer::None.as_str().to_owned()),
        payment: Set(PaymentAnswer::None.as_str().to_owned()),
        cancel_reason: Set(None),
        answer_due_at: Set(OffsetDateTime::now_utc() + placing.answer_timeout),
        trace: Set(serde_json::to_value(placing.trace).map_err(|error| DbErr::Json(error.to_string()))?),
    };
    let taken = OnConflict::column(Column::IdempotencyKey).do_nothing().to_owned();
    // As a list: of one row the library takes "nothing returned" for an error.
    let made = Entity::insert_many([row])
        .on_conflict(taken)
        .exec_with_returning(tx)
        .instrument(spans::statement("INSERT", "orders"))
        .await?;
    Ok(made.first().map(|made| (OrderId(made.id), made.created_at)))
}

/// The order that was placed under `key`, with the fingerprint of its request.
pub(crate) async fn find_by_key(
    db: &impl ConnectionTrait,
    key: &str,
) -> Result<Option<(Order, Vec<u8>)>, DbErr> {
    let Some(row) = Entity::find().filter(Column::IdempotencyKey.eq(key)).one(db).await? else {
        return Ok(None);
    };
    let fingerprint = row.request_fingerprint.clone();
    Ok(with_lines(db, vec![row]).await?.pop().map(|order| (order, fingerprint)))
}

/// One order.
pub(crate) async fn find(db: &impl ConnectionTrait, id: OrderId) -> Result<Option<Order>, DbErr> {
    let rows = Entity::find_by_id(id.0).all(db).await?;
    Ok(with_lines(db, rows).await?.pop())
}

/// Orders with ids below `before`, newest first.
pub(crate) async fn list(
    db: &impl ConnectionTrait,
    customer: Option<&str>,
    before: Option<OrderId>,
    limit: u64,
) -> Result<Vec<Order>, DbErr> {
    let mut query = Entity::find().order_by_desc(Column::Id).limit(limit);
    if let Some(customer) = customer {
        query = query.filter(Column::Customer.eq(customer));
    }
    if let Some(before) = before {
        query = query.filter(Column::Id.lt(before.0));
    }
    let rows = query.all(db).await?;
    with_lines(db, rows).await
}

async fn with_lines(db: &impl ConnectionTrait, rows: Vec<Model>) -> Result<Vec<Order>, DbErr> {
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let lines = order_lines::Entity::find()
        .filter(order_lines::Column::OrderId.is_in(ids))
        .order_by_asc(order_lines::Column::OrderId)
        .order_by_asc(order_lines::Column::Position)
        .all(db)
        .await?;
    rows.into_iter()
        .map(|row| {
            let lines = lines
                .iter()
                .filter(|line| line.order_id == row.id)
                .map(|line| OrderLine {
                    sku: Sku(line.sku.clone()),
                    quantity: line.quantity,
                    unit_price_minor: line.unit_price_minor,
                })
                .collect();
            order(row, lines)
        })
        .collect()
}

fn order(row: Model, lines: Vec<OrderLine>) -> Result<Order, DbErr> {
    let unknown =
        |what: &str, found: &str| DbErr::Type(format!("order {} has the unknown {what} {found}", row.id));
    let reason = row.cancel_reason.as_deref();
    let saga = Saga {
        order_id: OrderId(row.id),
        total_minor: row.total_minor,
        currency: row.currency,
        status: OrderStatus::parse(&row.status).ok_or_else(|| unknown("status", &row.status))?,
        stock: StockAnswer::parse(&row.stock).ok_or_else(|| unknown("stock", &row.stock))?,
        payment: PaymentAnswer::parse(&row.payment).ok_or_else(|| unknown("payment", &row.payment))?,
        cancel_reason: reason
            .map(|reason| CancelReason::parse(reason).ok_or_else(|| unknown("cancel reason", reason)))
            .transpose()?,
        version: row.version,
    };
    Ok(Order { saga, customer: row.customer, lines, created_at: row.created_at })
}
