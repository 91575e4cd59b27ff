//! The service's tables, and the queries over them.

pub mod calls;
pub(crate) mod payments;

use database::Migration;
use sea_orm::{DbBackend, DbErr, Statement, Value};

/// Every migration of this service's database.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    let mut all = outbox::migrations("payment-service");
    all.extend(inbox::migrations());
    all.push(Migration::new(
        "payment_service_0001_create_payments",
        include_str!("../../migrations/0001_create_payments.up.sql"),
        include_str!("../../migrations/0001_create_payments.down.sql"),
    ));
    all
}

fn statement(sql: &str, values: impl IntoIterator<Item = Value>) -> Statement {
    Statement::from_sql_and_values(DbBackend::Postgres, sql, values)
}

fn parse_id(text: &str) -> Result<events::OrderId, DbErr> {
    text.parse().map_err(|error: events::IdError| DbErr::Type(error.to_string()))
}
