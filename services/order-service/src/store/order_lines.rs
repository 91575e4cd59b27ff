//! Table `order_lines`.

use sea_orm::{ActiveValue::Set, entity::prelude::*};
use telemetry::spans;
use tracing::Instrument;

use crate::domain::Order;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "order_lines")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub order_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i32,
    pub sku: String,
    pub quantity: i32,
    pub unit_price_minor: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::orders::Entity",
        from = "Column::OrderId",
        to = "super::orders::Column::Id"
    )]
    Order,
}

impl Related<super::orders::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Order.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// Stores the lines of `order`.
pub(crate) async fn insert(tx: &impl ConnectionTrait, order: &Order) -> Result<(), DbErr> {
    let lines = (1..).zip(&order.lines).map(|(position, line)| ActiveModel {
        order_id: Set(order.saga.order_id.0),
        position: Set(position),
        sku: Set(line.sku.0.clone()),
        quantity: Set(line.quantity),
        unit_price_minor: Set(line.unit_price_minor),
    });
    Entity::insert_many(lines)
        .exec_without_returning(tx)
        .instrument(spans::statement("INSERT", "order_lines"))
        .await
        .map(drop)
}
