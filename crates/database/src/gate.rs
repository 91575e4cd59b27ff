//! Who may use the pool: so few calls at a time that none of them waits, or gives up, in the pool itself.

use std::{sync::Arc, time::Duration};

use sea_orm::{ConnAcquireErr, DatabaseConnection, DbErr, sqlx};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Options;

/// Connections that calls leave to the service's own work: its consumer and its sweeper.
const OWN: u32 = 2;

/// The way to a pool for what comes from outside, in any number.
///
/// A pool opens a connection in the call that wants one, and throws the half-opened one away when that call gives up.
/// With more calls than connections each has waited before it may open one, and little of its time is left: on a busy
/// machine no connection is ever opened again, however long that goes on. So calls wait here, for a place; who has
/// one finds a connection in the pool, or has one opened that is kept when the call gives up meanwhile.
pub struct Gate {
    db: DatabaseConnection,
    places: Arc<Semaphore>,
    most: u32,
    wait: Duration,
}

/// A call's place, until it is dropped.
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Gate {
    /// For the pool `db`, which was made from `options`.
    #[must_use]
    pub fn new(db: DatabaseConnection, options: &Options) -> Self {
        let most = options.max_connections;
        let places = most.saturating_sub(OWN).max(1);
        let places = Arc::new(Semaphore::new(places as usize));
        Self { db, places, most, wait: Duration::from_millis(options.acquire_timeout_ms) }
    }

    /// Waits for a place and for a connection to be open, in the order of arrival. Cancellation safe; what is being
    /// opened goes on being opened.
    ///
    /// # Errors
    /// [Unavailable](crate::Failure::Unavailable): not within `acquire_timeout_ms`, or the database refuses.
    pub async fn enter(&self) -> Result<Place, DbErr> {
        let late = || DbErr::ConnectionAcquire(ConnAcquireErr::Timeout);
        tokio::time::timeout(self.wait, self.place()).await.map_err(|_| late())?
    }

    async fn place(&self) -> Result<Place, DbErr> {
        let closed = |_| DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed);
        let permit = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let pool = self.db.get_postgres_connection_pool();
        if pool.num_idle() > 0 || pool.size() >= self.most {
            return Ok(Place { _permit: permit });
        }
        let pool = pool.clone();
        // The place is kept until the connection is there, or there would be more of these than places.
        let opening = tokio::spawn(async move { pool.acquire().await.map(|_| Place { _permit: permit }) });
        match opening.await {
            Ok(place) => place.map_err(sqlx_error),
            Err(_) => Err(DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)),
        }
    }
}

fn sqlx_error(error: sqlx::Error) -> DbErr {
    match error {
        sqlx::Error::PoolTimedOut => DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
        error => DbErr::Conn(sea_orm::RuntimeErr::SqlxError(Arc::new(error))),
    }
}
