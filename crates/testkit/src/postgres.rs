//! A database for one test. Not dropped: the whole cluster is deleted after the run.

use database::Migration;
use sea_orm::DatabaseConnection;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// A migrated database that no other test knows.
pub struct TestDatabase {
    /// `postgres://...`
    pub url: String,
}

/// Makes a database and applies `migrations`.
///
/// # Panics
/// When Postgres refuses.
pub async fn database(migrations: Vec<Migration>) -> TestDatabase {
    let server = crate::variable("BREW_TEST_POSTGRES");
    let name = format!("test_{}", Uuid::new_v4().simple());
    let admin = connect(&server).await;
    admin.batch_execute(&format!("create database {name} template template0")).await.unwrap();
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    let database = TestDatabase { url: format!("{base}/{name}") };
    let pool = database.pool().await;
    database::migrate(&pool, migrations).await.unwrap();
    pool.close().await.unwrap();
    database
}

impl TestDatabase {
    /// A connection of its own.
    ///
    /// # Panics
    /// When Postgres refuses.
    pub async fn client(&self) -> Client {
        connect(&self.url).await
    }

    /// A pool, as a service has one.
    ///
    /// # Panics
    /// When Postgres refuses.
    pub async fn pool(&self) -> DatabaseConnection {
        database::connect(&self.options()).await.unwrap()
    }

    /// A service's settings for it.
    #[must_use]
    pub fn options(&self) -> database::Options {
        database::Options { url: self.url.clone().into(), max_connections: 10, acquire_timeout_ms: 3000 }
    }

    /// The one number that `query` returns.
    ///
    /// # Panics
    /// When it returns anything else.
    pub async fn number(&self, query: &str) -> i64 {
        self.client().await.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Drops the outbox's daily partitions, as if its publisher had not been there for days: all rows go to the default
    /// partition.
    ///
    /// # Panics
    /// When there are none.
    pub async fn drop_days(&self) {
        let drop = "do $$ declare day regclass; begin
                        for day in select inhrelid from pg_inherits where inhparent = 'outbox'::regclass
                                      and inhrelid <> 'outbox_default'::regclass loop
                            execute format('drop table %s', day);
                        end loop;
                        if not found then raise 'no partitions'; end if; end $$";
        self.client().await.batch_execute(drop).await.unwrap();
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
