//! Keeps an outbox's table in shape, now and then.

use std::time::Duration;

use outbox::{Kept, SessionOptions, Upkeep};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::{Error, Options, Source, options::all_hold};

/// Whether and how the outbox's table is kept: partitions by day, and how long published rows stay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpkeepOptions {
    /// Off where the publisher's role may not change tables.
    pub enabled: bool,
    /// How often. After a run that left something, no longer than 30 s.
    pub every_ms: u64,
    /// For so many days after today there are partitions.
    pub days_ahead: u16,
    /// A day's rows are dropped when all were published or discarded longer ago than this; 0: never.
    pub retention_hours: u64,
    /// How long a lock on the table is waited for; everybody else waits behind it.
    pub lock_timeout_ms: u64,
    /// How long a statement under that lock may take.
    pub statement_timeout_ms: u64,
}

impl UpkeepOptions {
    /// Checks the values.
    ///
    /// # Errors
    /// Everything that makes no sense, by key.
    pub fn validate(&self) -> Result<(), Error> {
        let rules = [
            (self.every_ms >= 1000, "upkeep.every_ms must be at least 1000"),
            (self.days_ahead >= 1 && self.days_ahead <= 30, "upkeep.days_ahead must be 1 to 30"),
            (self.lock_timeout_ms >= 1, "upkeep.lock_timeout_ms must be at least 1"),
            (self.statement_timeout_ms >= 1, "upkeep.statement_timeout_ms must be at least 1"),
        ];
        all_hold(&rules)
    }

    fn upkeep(&self) -> Upkeep {
        let hours = self.retention_hours;
        Upkeep {
            days_ahead: self.days_ahead,
            retention: (hours > 0).then(|| Duration::from_secs(hours.saturating_mul(3600))),
            lock_timeout: Duration::from_millis(self.lock_timeout_ms),
            statement_timeout: Duration::from_millis(self.statement_timeout_ms),
        }
    }
}

/// Keeps the outbox of `source` until `shutdown`; any number of processes may do so, one works at a time. What fails is
/// logged and tried again: publishing does not depend on it. Nothing to do when it is not enabled.
pub async fn upkeep(source: Source, relay: Options, options: UpkeepOptions, shutdown: CancellationToken) {
    if !options.enabled {
        return;
    }
    let session = relay.direct_session(&source);
    loop {
        let run = tokio::select! {
            run = run(&session, options.upkeep()) => run,
            () = shutdown.cancelled() => return,
        };
        let wait = match run {
            Ok(kept) => {
                tell(&source.name, &kept);
                if kept.left.is_empty() { options.every_ms } else { options.every_ms.min(30_000) }
            }
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::warn!(source = source.name, error, "the outbox's partitions were not kept");
                options.every_ms
            }
        };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn run(session: &SessionOptions, upkeep: Upkeep) -> Result<Kept, outbox::Error> {
    outbox::keep(&mut outbox::connect(session).await?, upkeep).await
}

fn tell(source: &str, kept: &Kept) {
    let Kept { made, moved, pruned, left } = kept;
    if !made.is_empty() || *moved > 0 {
        tracing::info!(source, ?made, moved, "partitions made");
    }
    for (partition, rows) in pruned {
        tracing::info!(source, partition, rows, "partition dropped, all its rows are settled and old");
    }
    for (what, why) in left {
        tracing::warn!(source, what, why, "left for the next run");
    }
}
