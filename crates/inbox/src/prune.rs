//! What was applied long ago is forgotten, never before the topics and the longest replay have forgotten it.

use std::{collections::BTreeMap, future::Future, time::Duration};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement, Value};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::Error;

/// How soon a broker that could not be asked is asked again, and the longest wait for the first turn.
const SOON: Duration = Duration::from_secs(10);

/// How long the inbox remembers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// How long an event that was applied is remembered; 0: for ever.
    pub retention_ms: u64,
    /// How long after it left its topic an event may still come again, by a replay or a redrive.
    pub longest_replay_ms: u64,
    /// How often old ones are looked for.
    pub prune_every_ms: u64,
    /// At most so many are deleted in one transaction.
    pub prune_chunk_rows: u32,
}

impl Options {
    /// Holds the law against how many milliseconds each topic keeps its records (none: for ever): an event is
    /// remembered longer than its topic has it and the longest replay takes together. Else a copy that comes late
    /// would take effect again.
    ///
    /// # Errors
    /// [`Error::Forgets`] for the first topic that breaks it.
    pub fn check(&self, topics: &BTreeMap<String, Option<u64>>) -> Result<(), Error> {
        let remembers = |kept_ms: Option<u64>| {
            let needed_ms = kept_ms.map(|ms| ms.saturating_add(self.longest_replay_ms));
            self.retention_ms == 0 || needed_ms.is_some_and(|ms| self.retention_ms > ms)
        };
        match topics.iter().find(|(_, kept_ms)| !remembers(**kept_ms)) {
            None => Ok(()),
            Some((topic, kept_ms)) => Err(Error::Forgets {
                retention_ms: self.retention_ms,
                topic: topic.clone(),
                kept: kept_ms.map_or("-1 (for ever)".to_owned(), |ms| ms.to_string()),
                longest_replay_ms: self.longest_replay_ms,
            }),
        }
    }
}

/// Asks what the topics keep and holds the law against it. False: it could not be asked, which is told.
///
/// # Errors
/// [`Error::Forgets`]: the service must not start.
pub async fn check<F, E>(options: &Options, ask: impl Fn() -> F) -> Result<bool, Error>
where
    F: Future<Output = Result<BTreeMap<String, Option<u64>>, E>>,
    E: std::error::Error,
{
    match ask().await {
        Ok(topics) => options.check(&topics).map(|()| true),
        Err(error) => {
            tracing::warn!(%error, "what the topics keep is not known yet, and nothing is pruned until it is");
            Ok(false)
        }
    }
}

/// Prunes what `consumer` has applied, again and again until `shutdown`, each time after a look at the law. `checked`:
/// whether it was seen to hold before. Once it was, a topic that is altered stops the pruning and not the service.
///
/// # Errors
/// [`Error::Forgets`], when the first look that succeeds finds it broken.
pub async fn keep_pruned<F, E>(
    db: DatabaseConnection,
    consumer: &'static str,
    options: Options,
    ask: impl Fn() -> F,
    mut checked: bool,
    shutdown: CancellationToken,
) -> Result<(), Error>
where
    F: Future<Output = Result<BTreeMap<String, Option<u64>>, E>>,
    E: std::error::Error,
{
    let every = Duration::from_millis(options.prune_every_ms);
    let mut pause = every.min(SOON);
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
        let turn = async {
            match check(&options, &ask).await {
                Ok(true) => {
                    turn(&db, consumer, &options).await;
                    Ok(true)
                }
                Err(error) if checked => {
                    tracing::error!(%error, "nothing is pruned");
                    Ok(true)
                }
                other => other,
            }
        };
        tokio::select! {
            looked = turn => {
                let looked = looked?;
                pause = if looked { every } else { every.min(SOON) };
                checked |= looked;
            }
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

async fn turn(db: &DatabaseConnection, consumer: &str, options: &Options) {
    if options.retention_ms == 0 {
        return;
    }
    let older_than = Duration::from_millis(options.retention_ms);
    match prune(db, consumer, older_than, options.prune_chunk_rows).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "old ids were pruned"),
        Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "not pruned"),
    }
}

/// Forgets what `consumer` applied longer than `older_than` ago, by the database's clock, and returns how many that
/// were. At most `chunk_rows` a transaction. Any number may do so at once: each skips what another has locked.
/// Cancellation safe: chunks that are done stay done.
///
/// # Errors
/// The database's.
pub async fn prune(
    db: &DatabaseConnection,
    consumer: &str,
    older_than: Duration,
    chunk_rows: u32,
) -> Result<u64, Error> {
    let age_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
    let chunk = u64::from(chunk_rows.max(1));
    let mut pruned = 0;
    loop {
        let values: [Value; 3] =
            [consumer.into(), (age_ms as f64).into(), i64::from(chunk_rows.max(1)).into()];
        let sql = include_str!("../sql/prune.sql");
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
        let deleted = db.execute_raw(statement).await.map_err(Error::Prune)?.rows_affected();
        pruned += deleted;
        if deleted < chunk {
            return Ok(pruned);
        }
    }
}
