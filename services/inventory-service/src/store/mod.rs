//! The service's tables, and the queries over them.

pub(crate) mod reservations;
pub(crate) mod restocks;
pub(crate) mod stock;

use database::Migration;
use sea_orm::{DbBackend, Statement, Value};

/// Every migration of this service's database.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    let mut all = outbox::migrations("inventory-service");
    all.extend(inbox::migrations());
    all.push(Migration::new(
        "inventory_service_0001_create_stock",
        include_str!("../../migrations/0001_create_stock.up.sql"),
        include_str!("../../migrations/0001_create_stock.down.sql"),
    ));
    all.push(Migration::new(
        "inventory_service_0002_commit_and_release",
        include_str!("../../migrations/0002_commit_and_release.up.sql"),
        include_str!("../../migrations/0002_commit_and_release.down.sql"),
    ));
    all
}

fn statement(sql: &str, values: impl IntoIterator<Item = Value>) -> Statement {
    Statement::from_sql_and_values(DbBackend::Postgres, sql, values)
}
