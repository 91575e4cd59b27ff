//! The polling driver: turns workers until shutdown, or until nothing is pending.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use runtime::Health;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    options::{Options, Source, Target},
    worker::{Observer, Turn, TurnError, Worker},
};

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// At shutdown only.
    Forever,
    /// When nothing is pending in the source.
    UntilDrained,
}

/// What a run came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that were acknowledged and marked, or acknowledged and left for another mark.
    pub published: usize,
    /// Turns that did not go well.
    pub failed_turns: usize,
}

/// Publishes `source` with its workers until `mode` or `shutdown` says stop; the turn that is under way is ended
/// first. Whatever goes wrong in a turn is logged and tried again, with pauses from 50 ms to 5 s.
///
/// # Errors
/// Options that do not fit together, before anything is connected; or a panic.
pub async fn run(
    source: Source,
    target: Target,
    options: Options,
    mode: Mode,
    health: Health,
    observer: Option<Observer>,
    shutdown: CancellationToken,
) -> Result<Report, Error> {
    options.validate()?;
    health.not_ready(part(&source.name), "not connected yet");
    let mut workers = JoinSet::new();
    for _ in 0..source.workers.max(1) {
        let worker = Worker::new(source.clone(), target.clone(), options.clone(), observer.clone());
        let (name, options) = (source.name.clone(), options.clone());
        workers.spawn(drive(worker, name, options, mode, health.clone(), shutdown.clone()));
    }
    let mut total = Report::default();
    while let Some(report) = workers.join_next().await {
        let report = report?;
        total.published += report.published;
        total.failed_turns += report.failed_turns;
    }
    Ok(total)
}

async fn drive(
    mut worker: Worker,
    name: String,
    options: Options,
    mode: Mode,
    health: Health,
    shutdown: CancellationToken,
) -> Report {
    let mut report = Report::default();
    let mut idle_ms = options.poll_min_ms;
    let mut pauses = pauses();
    while !shutdown.is_cancelled() {
        let wait = match worker.drain_once().await {
            Ok(turn) => {
                health.ready(part(&name));
                pauses = self::pauses();
                match turn {
                    Turn::Idle if mode == Mode::UntilDrained => break,
                    Turn::Idle | Turn::Elsewhere | Turn::Held => {
                        let wait = Duration::from_millis(idle_ms);
                        idle_ms = (idle_ms * 2).min(options.poll_max_ms);
                        wait
                    }
                    Turn::Moved { rows } => {
                        report.published += rows;
                        idle_ms = options.poll_min_ms;
                        continue;
                    }
                }
            }
            Err(error) => {
                report.failed_turns += 1;
                if let TurnError::Send { acknowledged, .. } = &error {
                    report.published += acknowledged;
                }
                let wait = pauses.next().unwrap_or_default();
                tell(&name, &error, wait);
                health.not_ready(part(&name), error.to_string());
                wait
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shutdown.cancelled() => {}
        }
    }
    worker.close().await;
    report
}

fn part(source: &str) -> String {
    format!("relay of {source}")
}

fn pauses() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times()
        .build()
}

fn tell(source: &str, error: &TurnError, wait: Duration) {
    tracing::warn!(source, error = telemetry::chain(error), ?wait, "turn failed, trying again");
}
