//! A relay's own connection to an outbox.

use std::time::Duration;

use postgres_native_tls::MakeTlsConnector;
use tokio_postgres::{Client, Config, Statement};

use crate::Error;

/// How to reach an outbox, and what bounds a claim.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// `postgres://user:password@host:port/name`, with `sslmode` as in libpq.
    pub url: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Postgres ends a claim whose publisher is silent for so long; must be longer than any send.
    pub idle_in_transaction_timeout: Duration,
    /// A peer that is gone without a word is noticed after about this long.
    pub keepalive: Duration,
}

/// One connection, with its statements prepared. Ends when dropped; an open claim is then rolled back by the
/// server.
pub struct Session {
    pub(crate) client: Client,
    pub(crate) set_local: String,
    pub(crate) statements: Statements,
}

pub(crate) struct Statements {
    pub(crate) pending_shards: Statement,
    pub(crate) claim_shards: Statement,
    pub(crate) fetch_pending: Statement,
    pub(crate) mark_published: Statement,
}

impl Session {
    /// Connects and prepares.
    ///
    /// # Errors
    /// A URL that cannot be read, a server that is away or refuses, an outbox that is not migrated.
    pub async fn connect(options: &SessionOptions) -> Result<Self, Error> {
        let mut config: Config = options.url.parse()?;
        config
            .connect_timeout(options.connect_timeout)
            .keepalives_idle(options.keepalive / 2)
            .keepalives_interval(options.keepalive / 6)
            .keepalives_retries(3)
            .tcp_user_timeout(options.keepalive)
            .application_name("brew-relay");
        let tls = MakeTlsConnector::new(native_tls::TlsConnector::new()?);
        let (client, connection) = config.connect(tls).await?;
        tokio::spawn(async move {
            // The error reaches whoever uses the client; this task only moves bytes and ends with the client.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "outbox session ended");
            }
        });
        let statements = Statements {
            pending_shards: client.prepare(include_str!("../sql/pending_shards.sql")).await?,
            claim_shards: client.prepare(include_str!("../sql/claim_shards.sql")).await?,
            fetch_pending: client.prepare(include_str!("../sql/fetch_pending.sql")).await?,
            mark_published: client.prepare(include_str!("../sql/mark_published.sql")).await?,
        };
        let set_local = format!(
            "{}set local idle_in_transaction_session_timeout = {};",
            include_str!("../sql/claim_settings.sql"),
            options.idle_in_transaction_timeout.as_millis()
        );
        Ok(Self { client, set_local, statements })
    }

    /// The shards that have something to send. Locks nothing and writes nothing.
    ///
    /// # Errors
    /// The session is of no more use.
    pub async fn pending_shards(&self) -> Result<Vec<i16>, Error> {
        let rows = self.client.query(&self.statements.pending_shards, &[]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}
