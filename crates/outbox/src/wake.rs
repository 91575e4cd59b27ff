//! Wake-ups: whoever publishes hears that something was committed, sooner than by its next look. A wake-up carries
//! no data, and a lost one costs time only.

use std::{convert::Infallible, time::Duration};

use futures::{TryStreamExt, stream};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_postgres::AsyncMessage;
use tokio_util::sync::CancellationToken;

use crate::{Error, SessionOptions, session};

/// The channel of LISTEN and NOTIFY; a database has one outbox.
const CHANNEL: &str = "brew_outbox";

/// At most one NOTIFY in this time. Every NOTIFY takes a lock of the whole server at its commit.
const COALESCE: Duration = Duration::from_millis(10);

/// How a writer wakes publishers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeOptions {
    /// Whether publishers in other processes are woken after a commit.
    pub notify: bool,
}

/// Says "something was committed" to everybody in this process who [subscribed](Self::subscribe).
#[derive(Debug, Clone)]
pub struct Wake(watch::Sender<()>);

impl Default for Wake {
    fn default() -> Self {
        Self(watch::Sender::new(()))
    }
}

impl Wake {
    /// Call it after the commit, never inside the transaction. Does not block.
    pub fn wake(&self) {
        self.0.send_replace(());
    }

    /// Sees every later wake-up; many that come while nobody looks are one.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// Passes wake-ups of this process on to publishers in other processes, by NOTIFY: at once, then at most one in ten
/// milliseconds, in transactions of its own. Ends at `shutdown`.
///
/// # Errors
/// Never: what cannot be passed on is dropped, and publishers look by themselves.
pub async fn notify(
    db: DatabaseConnection,
    wake: Wake,
    shutdown: CancellationToken,
) -> Result<(), Infallible> {
    // A NOTIFY draws a transaction id, so its commit would wait for the disk, as the writers' do; and after a crash it
    // is worth nothing. Two statements sent as one text are one transaction.
    let notify = format!("set local synchronous_commit = off; notify {CHANNEL}");
    let mut woken = wake.subscribe();
    loop {
        tokio::select! {
            changed = woken.changed() => if changed.is_err() { return Ok(()) },
            () = shutdown.cancelled() => return Ok(()),
        }
        if let Err(error) = db.execute_unprepared(&notify).await {
            tracing::debug!(%error, "wake-up not passed on");
        }
        tokio::time::sleep(COALESCE).await;
    }
}

/// Turns NOTIFYs into wake-ups, over a connection of its own, until that ends. Wakes once when it has begun, since
/// something may have been missed before.
///
/// # Errors
/// The connection's.
pub async fn listen(options: &SessionOptions, wake: &Wake) -> Result<(), Error> {
    let (client, mut connection) = session::connection(options).await?;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let pump = async {
        while let Some(message) = messages.try_next().await? {
            if matches!(message, AsyncMessage::Notification(_)) {
                wake.wake();
            }
        }
        Ok(())
    };
    let ask = async {
        client.batch_execute(&format!("listen {CHANNEL}")).await?;
        wake.wake();
        std::future::pending().await
    };
    tokio::select! {
        end = pump => end,
        end = ask => end,
    }
}
