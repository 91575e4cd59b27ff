//! Table `menu`.

use std::collections::BTreeMap;

use events::Sku;
use sea_orm::entity::prelude::*;

use crate::domain::MenuItem;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "menu")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub sku: String,
    pub name: String,
    pub price_minor: i64,
    pub currency: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Those of `skus` that are on the menu.
pub(crate) async fn find(
    db: &impl ConnectionTrait,
    skus: &[String],
) -> Result<BTreeMap<Sku, MenuItem>, DbErr> {
    let found = Entity::find().filter(Column::Sku.is_in(skus)).all(db).await?;
    Ok(found
        .into_iter()
        .map(|item| (Sku(item.sku), MenuItem { price_minor: item.price_minor, currency: item.currency }))
        .collect())
}
