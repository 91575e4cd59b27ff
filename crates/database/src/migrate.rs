//! Migrations as plain SQL files, applied in order and once.

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, TransactionTrait};
use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait, migrator::MigratorTraitSelf,
};

use crate::Error;

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

/// Applies those of `migrations` that are not applied yet: all or none. Two at once wait for each other.
///
/// # Errors
/// The database's, after which nothing has changed.
pub async fn migrate(db: &DatabaseConnection, migrations: Vec<Migration>) -> Result<(), Error> {
    let tx = db.begin().await?;
    // Any number will do, as long as every migrator of this database takes the same.
    tx.execute_unprepared("select pg_advisory_xact_lock(4711001)").await?;
    Migrator(migrations).up(&tx, None).await?;
    Ok(tx.commit().await?)
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
