//! A relay's own connection to an outbox.

use std::time::{Duration, Instant};

use futures::future::try_join3;
use postgres_native_tls::{MakeTlsConnector, TlsStream};
use tokio_postgres::{Client, Config, Connection, Socket};

use crate::{Error, bounds::Bounds, statements::Statements};

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
    /// Whether statements are prepared once and called by name. Not behind a pooler in transaction mode that does not
    /// keep them (PgBouncer before 1.21): there they are sent as text, and planned each time.
    pub prepared: bool,
}

/// One connection, with its statements prepared. Ends when dropped; an open claim is then rolled back by the
/// server.
pub struct Session {
    pub(crate) client: Client,
    /// Begins a claim's transaction.
    pub(crate) begin: String,
    /// Begins that of a look at what is pending.
    begin_look: String,
    /// Has the server end a session that is silent for as long as a claim may be.
    pub(crate) idle: String,
    pub(crate) statements: Statements,
    /// A claim was begun and not settled.
    pub(crate) in_claim: bool,
    /// Which ids need not be looked at any more.
    pub(crate) bounds: Bounds,
}

impl Session {
    /// Connects and prepares.
    ///
    /// # Errors
    /// A URL that cannot be read, a server that is away or refuses, an outbox that is not migrated.
    pub async fn connect(options: &SessionOptions) -> Result<Self, Error> {
        let client = connect(options).await?;
        let statements = Statements::new(&client, options.prepared).await?;
        let plans = include_str!("../sql/plan_settings.sql");
        // Losing a mark to a crash of Postgres costs a repeat, never an event: the commit need not wait for the disk.
        let begin = format!(
            "begin isolation level read committed;{plans}set local synchronous_commit = off;\
             set local idle_in_transaction_session_timeout = {};",
            options.idle_in_transaction_timeout.as_millis()
        );
        let begin_look = format!("begin isolation level read committed read only;{plans}");
        let idle = format!("set idle_session_timeout = {}", options.idle_in_transaction_timeout.as_millis());
        Ok(Self { client, begin, begin_look, idle, statements, in_claim: false, bounds: Bounds::default() })
    }

    /// The shards that have something to send. Locks nothing and writes nothing.
    ///
    /// # Errors
    /// The session is of no more use.
    pub async fn pending_shards(&mut self) -> Result<Vec<i16>, Error> {
        let ((low, epoch), began) = (self.bounds.all(), Instant::now());
        self.abandon().await?;
        // Sent together, run one after the other: one round trip.
        let ((), rows, ()) = try_join3(
            self.client.batch_execute(&self.begin_look),
            self.statements.pending_shards.rows(&self.client, &[&low, &epoch]),
            self.client.batch_execute("commit"),
        )
        .await?;
        if rows.is_empty() {
            self.bounds.walked(began.elapsed());
        }
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Ends a claim that was dropped without being settled, if there is one.
    pub(crate) async fn abandon(&mut self) -> Result<(), Error> {
        if self.in_claim {
            self.client.batch_execute("rollback").await?;
            self.in_claim = false;
        }
        Ok(())
    }

    /// Up to which id a shard is known to have nothing to send.
    #[must_use]
    pub fn low_bound(&self, shard: i16) -> i64 {
        self.bounds.low(shard)
    }

    /// Whether some aggregate waits for another try of a row that could not be sent. Such rows are pending, although
    /// no shard is until their time has come.
    ///
    /// # Errors
    /// The session is of no more use.
    pub async fn waits(&self) -> Result<bool, Error> {
        Ok(self.statements.waits.row(&self.client, &[]).await?.try_get(0)?)
    }
}

/// A connection as a relay has it, for [`keep`](crate::keep) and what people decide. Ends when dropped.
///
/// # Errors
/// A URL that cannot be read, a server that is away or refuses.
pub async fn connect(options: &SessionOptions) -> Result<Client, Error> {
    let (client, connection) = connection(options).await?;
    tokio::spawn(async move {
        // The error reaches whoever uses the client; this task only moves bytes and ends with the client.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "outbox session ended");
        }
    });
    Ok(client)
}

/// Connects; the connection is the caller's to drive.
pub(crate) async fn connection(
    options: &SessionOptions,
) -> Result<(Client, Connection<Socket, TlsStream<Socket>>), Error> {
    let mut config: Config = options.url.parse()?;
    config
        .connect_timeout(options.connect_timeout)
        .keepalives_idle(options.keepalive / 2)
        .keepalives_interval(options.keepalive / 6)
        .keepalives_retries(3)
        .tcp_user_timeout(options.keepalive)
        .application_name("brew-relay");
    let tls = MakeTlsConnector::new(native_tls::TlsConnector::new()?);
    Ok(config.connect(tls).await?)
}
