//! Figures about an outbox, for people and tests.

use tokio_postgres::Client;

use crate::Error;

/// How many rows are in which state. Counts the whole table: not for a dashboard's every scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// All rows.
    pub total: i64,
    /// Not tried yet, or tried without the row's fault.
    pub pending: i64,
    /// How long the first of them has waited; none if nothing waits.
    pub oldest_pending_age_ms: Option<i64>,
    /// Acknowledged by the broker.
    pub published: i64,
    /// Held back until somebody looks.
    pub parked: i64,
    /// Given up by somebody.
    pub discarded: i64,
}

/// What a dashboard shows of an outbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauges {
    /// Rows that wait, counted up to 100,000 that are ready and as many that are held back.
    pub pending: i64,
    /// Age of the oldest row that waits, unless behind a parked one; 0 when none does.
    pub oldest_pending_age_s: f64,
    /// Rows for a person.
    pub parked: i64,
    /// Bytes of the log that the replication slot of this database that is furthest behind keeps on the disk; 0 when
    /// there is none.
    pub slot_lag_bytes: f64,
}

/// Reads them; what it costs does not grow with the published rows.
///
/// # Errors
/// The database's.
pub async fn gauges(client: &Client) -> Result<Gauges, Error> {
    let row = client.query_one(include_str!("../sql/gauges.sql"), &[]).await?;
    Ok(Gauges {
        pending: row.try_get(0)?,
        oldest_pending_age_s: row.try_get(1)?,
        parked: row.try_get(2)?,
        slot_lag_bytes: row.try_get(3)?,
    })
}

/// Counts the rows by state.
///
/// # Errors
/// The database's.
pub async fn status(client: &Client) -> Result<Status, Error> {
    let row = client.query_one(include_str!("../sql/status.sql"), &[]).await?;
    Ok(Status {
        total: row.try_get(0)?,
        pending: row.try_get(1)?,
        published: row.try_get(2)?,
        parked: row.try_get(3)?,
        discarded: row.try_get(4)?,
        oldest_pending_age_ms: row.try_get(5)?,
    })
}
