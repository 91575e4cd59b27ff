//! The polling driver: turns workers until shutdown, or until nothing is pending.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use outbox::{LANES, Wake};
use runtime::Health;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    ears::listen,
    gauges,
    options::{Delivery, Options, Source, Target},
    tell,
    worker::{Observer, Turn, TurnError, Worker},
};

/// When to look again at shards that others hold.
const ELSEWHERE_MS: u64 = 10;

/// When to ask again for a lane that another replica keeps.
const STANDBY: Duration = Duration::from_secs(1);

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

/// What it takes to publish one outbox.
pub struct Setup {
    /// Where the rows are.
    pub source: Source,
    /// Where the records go.
    pub target: Target,
    /// How the relay works.
    pub options: Options,
    /// When to stop.
    pub mode: Mode,
    /// Is told whether this relay is ready.
    pub health: Health,
    /// Is told of each record.
    pub observer: Option<Observer>,
    /// Wakes the relay; without a wake-up it looks by itself, a little later.
    pub wake: Wake,
}

/// Publishes the outbox of `setup` with its workers until its mode or `shutdown` says stop; the turn that is under way
/// is ended first. Whatever goes wrong in a turn is logged and tried again, with pauses from 50 ms to 5 s.
///
/// # Errors
/// Options that do not fit together, before anything is connected; or a panic.
pub async fn run(setup: Setup, shutdown: CancellationToken) -> Result<Report, Error> {
    let Setup { source, options, .. } = &setup;
    options.validate()?;
    setup.health.not_ready(part(&source.name), "not connected yet");
    let done = shutdown.child_token();
    let ears = (source.listen && setup.mode == Mode::Forever).then(|| {
        let session = options.direct_session(source);
        tokio::spawn(listen(source.name.clone(), session, setup.wake.clone(), done.clone()))
    });
    let gauges = (setup.mode == Mode::Forever).then(|| {
        let session = options.direct_session(source);
        tokio::spawn(gauges::watch(source.name.clone(), session, done.clone()))
    });
    let mut workers = JoinSet::new();
    for worker in workers_of(&setup) {
        let driven = Driven {
            worker,
            name: source.name.clone(),
            options: options.clone(),
            mode: setup.mode,
            health: setup.health.clone(),
            woken: setup.wake.subscribe(),
        };
        workers.spawn(driven.run(shutdown.clone()));
    }
    let mut total = Report::default();
    while let Some(report) = workers.join_next().await {
        let report = report?;
        total.published += report.published;
        total.failed_turns += report.failed_turns;
    }
    done.cancel();
    for task in [ears, gauges].into_iter().flatten() {
        task.await?;
    }
    Ok(total)
}

fn workers_of(setup: &Setup) -> Vec<Worker> {
    let Setup { source, target, options, observer, .. } = setup;
    let with = || (target.clone(), options.clone());
    match source.delivery {
        Delivery::AtLeastOnce => (0..source.workers.max(1))
            .map(|_| Worker::new(source.clone(), target.clone(), options.clone(), observer.clone()))
            .collect(),
        Delivery::ExactlyOnce => {
            (0..LANES).map(|lane| Worker::of_lane(lane, source.clone(), with(), observer.clone())).collect()
        }
    }
}

/// A worker, with what its driver needs.
struct Driven {
    worker: Worker,
    name: String,
    options: Options,
    mode: Mode,
    health: Health,
    woken: watch::Receiver<()>,
}

impl Driven {
    async fn run(self, shutdown: CancellationToken) -> Report {
        let Self { mut worker, name, options, mode, health, mut woken } = self;
        let mut report = Report::default();
        let mut idle_ms = options.poll_min_ms;
        let mut pauses = pauses();
        while !shutdown.is_cancelled() {
            woken.mark_unchanged();
            let turn = worker.drain_once().await;
            // A wake-up is not for one who stands by.
            let calm = turn.as_ref().is_ok_and(|turn| *turn != Turn::Standby);
            let wait = match turn {
                Ok(turn) => {
                    health.ready(part(&name));
                    pauses = self::pauses();
                    match turn {
                        Turn::Idle if mode == Mode::UntilDrained && !worker.waits().await => break,
                        // A row may have come to a shard after its holder has read it.
                        Turn::Elsewhere => Duration::from_millis(ELSEWHERE_MS.min(idle_ms)),
                        Turn::Standby => STANDBY,
                        Turn::Idle | Turn::Held => {
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
                    tell::failed(&name, &error);
                    say(&name, &error, wait);
                    health.not_ready(part(&name), error.to_string());
                    wait
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // Not after a failure: its pause is there for a reason.
                Ok(()) = woken.changed(), if calm => idle_ms = options.poll_min_ms,
                () = shutdown.cancelled() => {}
            }
        }
        worker.close().await;
        report
    }
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

fn say(source: &str, error: &TurnError, wait: Duration) {
    tracing::warn!(source, error = telemetry::chain(error), ?wait, "turn failed, trying again");
}
