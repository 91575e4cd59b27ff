//! Migrations as plain SQL files, applied in order and once.

use std::{collections::HashSet, time::Duration};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement, TransactionTrait};
use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait, migrator::MigratorTraitSelf,
};

use tokio::time::Instant;

use crate::{Error, Options, connect};

/// One change of the schema, with its way back.
#[derive(Debug, Clone)]
pub struct Migration {
    /// Unique in the database; never changed once released.
    pub name: &'static str,
    /// SQL, any number of statements.
    pub up: String,
    /// SQL that undoes `up`.
    pub down: String,
}

impl Migration {
    /// A migration from two SQL files.
    #[must_use]
    pub fn new(name: &'static str, up: &str, down: &str) -> Self {
        Self { name, up: up.to_owned(), down: down.to_owned() }
    }
}

/// How often [`await_schema`] looks, and for how long.
const LOOK: Duration = Duration::from_millis(500);
const LIMIT: Duration = Duration::from_secs(300);

/// Applies those of `migrations` that are not applied yet: all or none. Two at once wait for each other. A database
/// that a later version has migrated stays as it is: after a rollback, the earlier version runs on the later schema.
///
/// # Errors
/// The database's, after which nothing has changed.
pub async fn migrate(db: &DatabaseConnection, migrations: Vec<Migration>) -> Result<(), Error> {
    let tx = db.begin().await?;
    // Any number will do, as long as every migrator of this database takes the same.
    tx.execute_unprepared("select pg_advisory_xact_lock(4711001)").await?;
    if !missing(&tx, &migrations).await?.is_empty() {
        Migrator(migrations).up(&tx, None).await?;
    }
    Ok(tx.commit().await?)
}

/// As [`migrate`], on a database that is only connected to for this.
///
/// # Errors
/// As [`migrate`].
pub async fn migrate_at(options: &Options, migrations: Vec<Migration>) -> Result<(), Error> {
    let db = connect(options).await?;
    migrate(&db, migrations).await?;
    Ok(db.close().await?)
}

/// Waits until all of `migrations` are applied, by whomever, for 5 minutes; a database that is away is waited for, too.
/// For what starts beside the job that migrates. Cancel safe.
///
/// # Errors
/// A URL that makes no sense; the time is over.
pub async fn await_schema(options: &Options, migrations: &[Migration]) -> Result<(), Error> {
    let db = connect(&Options { max_connections: 1, ..options.clone() }).await?;
    let deadline = Instant::now() + LIMIT;
    let mut told = String::new();
    loop {
        let why = match missing(&db, migrations).await {
            Ok(missing) if missing.is_empty() => return Ok(db.close().await?),
            Ok(missing) => format!("it lacks {}", missing.join(", ")),
            Err(error) => error.to_string(),
        };
        if Instant::now() + LOOK > deadline {
            return Err(Error::NoSchema { why, waited_s: LIMIT.as_secs() });
        }
        if why != told {
            tracing::info!(why, "waiting for the database's schema");
            told = why;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Those of `migrations` that are not applied.
async fn missing(db: &impl ConnectionTrait, migrations: &[Migration]) -> Result<Vec<&'static str>, DbErr> {
    let rows = |sql| db.query_all_raw(Statement::from_string(DbBackend::Postgres, sql));
    let there = rows("select 1 from pg_class where oid = to_regclass('seaql_migrations')").await?;
    let mut applied = HashSet::new();
    if !there.is_empty() {
        for row in rows("select version from seaql_migrations").await? {
            applied.insert(row.try_get_by_index::<String>(0)?);
        }
    }
    Ok(migrations.iter().map(|one| one.name).filter(|name| !applied.contains(*name)).collect())
}

/// Takes back all of `migrations`, last first.
///
/// # Errors
/// The database's, after which nothing has changed.
pub async fn revert(db: &DatabaseConnection, migrations: Vec<Migration>) -> Result<(), Error> {
    let tx = db.begin().await?;
    tx.execute_unprepared("select pg_advisory_xact_lock(4711001)").await?;
    Migrator(migrations).down(&tx, None).await?;
    Ok(tx.commit().await?)
}

struct Migrator(Vec<Migration>);

#[async_trait::async_trait]
impl MigratorTraitSelf for Migrator {
    fn migrations(&self) -> Vec<Box<dyn MigrationTrait>> {
        self.0.iter().map(|one| Box::new(one.clone()) as Box<dyn MigrationTrait>).collect()
    }
}

impl MigrationName for Migration {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(&self.up).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(&self.down).await.map(drop)
    }
}
