//! The lab's databases: one for each service.

use anyhow::Context;
use tokio_postgres::{Client, Config, NoTls};

use crate::local::State;

use super::service;

pub(crate) const ORDERS: &str = "order_service";
pub(crate) const INVENTORY: &str = "inventory_service";
pub(crate) const PAYMENTS: &str = "payment_service";
pub(crate) const GATEWAY: &str = "payment_gateway";

const ALL: [&str; 4] = [ORDERS, INVENTORY, PAYMENTS, GATEWAY];

/// Makes the databases that are not there, and runs each service's own migrations.
pub(crate) async fn db_init(state: &State) -> anyhow::Result<()> {
    let admin = connect(state.postgres_url()?).await?;
    for name in ALL {
        let there = admin.query_opt("select 1 from pg_database where datname = $1", &[&name]).await?;
        if there.is_none() {
            admin.batch_execute(&format!("create database {name}")).await?;
        }
    }
    service::migrate(state).await
}

/// Drops the databases that `db_init` makes.
pub(crate) async fn drop_databases(url: &str) -> anyhow::Result<()> {
    let admin = connect(url).await?;
    for name in ALL {
        admin.batch_execute(&format!("drop database if exists {name} with (force)")).await?;
    }
    Ok(())
}

pub(crate) async fn db_count(state: &State) -> anyhow::Result<i64> {
    number(state, ORDERS, "select count(*) from orders").await
}

pub(crate) async fn outbox_count(state: &State) -> anyhow::Result<i64> {
    Ok(outbox::status(&open(state, ORDERS).await?).await?.total)
}

pub(crate) async fn outbox_pending(state: &State) -> anyhow::Result<i64> {
    Ok(outbox::status(&open(state, ORDERS).await?).await?.pending)
}

pub(crate) async fn dup_count(state: &State) -> anyhow::Result<i64> {
    number(state, INVENTORY, "select count(*) from processed_outbox_ids").await
}

async fn number(state: &State, database: &str, query: &'static str) -> anyhow::Result<i64> {
    Ok(open(state, database).await?.query_one(query, &[]).await?.try_get(0)?)
}

/// A connection to one of the services' databases.
pub(crate) async fn open(state: &State, database: &str) -> anyhow::Result<Client> {
    let client = connect(&database_url(state.postgres_url()?, database)?).await;
    client.with_context(|| format!("database {database}; `make db-init` makes it"))
}

/// `url` with another database.
pub(crate) fn database_url(url: &str, database: &str) -> anyhow::Result<String> {
    let (server, rest) = url.rsplit_once('/').context("the Postgres URL names no database")?;
    let query = rest.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
    Ok(format!("{server}/{database}{query}"))
}

pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let mut config: Config = url.parse().context("the Postgres URL cannot be read")?;
    config.connect_timeout(std::time::Duration::from_secs(5));
    let (client, connection) = config.connect(NoTls).await?;
    // Its error reaches whoever uses the client.
    tokio::spawn(connection);
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_is_changed() {
        let url = |text| database_url(text, "orders").unwrap();
        assert_eq!(url("postgres://u:p@h:1/postgres"), "postgres://u:p@h:1/orders");
        assert_eq!(url("postgres://u:p@h:1/x?sslmode=require"), "postgres://u:p@h:1/orders?sslmode=require");
    }
}
