//! How long after its commit an event can be read from Kafka. Open loop: each transaction has its time, whatever the
//! ones before it took. One process writes and reads, so one clock is at both ends.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use events::header;
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use messaging::{Ends, Received, follow};
use outbox::{NewEvent, Wake};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, TransactionTrait};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{
    Args,
    drain::{judge, warm_up},
    ground::{Ground, Part, TIMEOUT},
    judge::Checked,
    meter::{Meter, Span, wait_for_quiet},
    running::{Running, make_outbox},
    seed::{EVENT_TYPE, payload, traceparent},
};

/// Transactions a second.
pub(crate) const RATE: u64 = 1000;

/// Each writes events of its own aggregates.
const CONNECTIONS: u64 = 16;
const AGGREGATES: u64 = 625 * CONNECTIONS;

/// That a publisher works off before the load, so that it is no new one on an empty table.
const WARMUP_EVENTS: u64 = 10_000;

/// Of the load, before anything counts; at most as long as what counts.
const WARMUP: Duration = Duration::from_secs(3);

/// For the last events to come.
const GRACE: Duration = Duration::from_secs(20);

/// Some quantiles of a time, in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Times {
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Times {
    pub(crate) fn of(us: &Histogram<u64>) -> Self {
        let at = |quantile| us.value_at_quantile(quantile) as f64 / 1000.0;
        Self { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99), max_ms: us.max() as f64 / 1000.0 }
    }
}

/// What one run came to.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    /// Whether the writer sent wake-ups.
    pub(crate) notify: bool,
    pub(crate) per_second: u64,
    pub(crate) commit_to_readable: Times,
    /// From the scheduled time, so with the commit, and with what the writer was late.
    pub(crate) scheduled_to_readable: Times,
    /// Where this is long, the machine was too busy, and so are the tails of the others.
    pub(crate) writer_late: Times,
    /// Of the whole load, warm-up and all.
    pub(crate) span: Span,
    pub(crate) resident_mb: f64,
    /// Commit to readable: quantile and milliseconds, for the plot.
    pub(crate) curve: Vec<(f64, f64)>,
}

/// A transaction of the writer.
struct Written {
    id: i64,
    due: Instant,
    began: Instant,
    committed: Instant,
}

type Seen = Arc<Mutex<BTreeMap<i64, Instant>>>;

/// With wake-ups in [`Part::Notified`], else without.
pub(crate) async fn measure(ground: &Ground, args: &Args, part: Part) -> anyhow::Result<Checked<Latency>> {
    let notify = part == Part::Notified;
    let client = make_outbox(ground, part).await?;
    let topic = ground.topic(part).await?;
    let mut publisher = Running::publisher(ground, part, &[])?;
    let ends = Ends::of(&ground.kafka()?, &topic, TIMEOUT).await?;
    let before = WARMUP_EVENTS.min(args.events);
    warm_up(ground, part, &ends, before, &mut publisher, &client).await?;
    let (seen, stop) = (Seen::default(), CancellationToken::new());
    let reader = follow(&ground.kafka()?, &topic, TIMEOUT, hear(&seen), stop.clone()).await?;
    wait_for_quiet(ground, args.quiet_wait).await?;

    let warmup = WARMUP.min(args.latency);
    let events = (RATE as f64 * (warmup + args.latency).as_secs_f64()) as u64;
    let db = connect(&ground.url(part)?).await?;
    let meter = Meter::start(ground, Some(publisher.pid()?), &client).await?;
    let began = Instant::now();
    let written = write(&db, &topic, events, notify).await?;
    let span = meter.stop(events, began.elapsed().as_secs_f64(), &client).await?;
    db.close().await?;
    let deadline = Instant::now() + GRACE;
    while locked(&seen).len() < written.len() && Instant::now() < deadline {
        publisher.must_run()?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    reader.await??;
    let resident_mb = publisher.close().await?;

    let check = judge(ground, &topic, before + events, &client).await?;
    let seen = std::mem::take(&mut *locked(&seen));
    let times = measured(&written, &seen, warmup)?;
    let latency = Latency {
        notify,
        per_second: RATE,
        commit_to_readable: Times::of(&times.readable),
        scheduled_to_readable: Times::of(&times.scheduled),
        writer_late: Times::of(&times.late),
        span,
        resident_mb,
        curve: curve(&times.readable),
    };
    Ok(Checked::new(check, latency))
}

fn locked(seen: &Seen) -> std::sync::MutexGuard<'_, BTreeMap<i64, Instant>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes when each event was first read.
fn hear(seen: &Seen) -> impl FnMut(Received) + Send + 'static {
    let seen = Arc::clone(seen);
    move |record| {
        let now = Instant::now();
        if let Some(id) = record.header(header::OUTBOX_ID).and_then(|id| id.parse().ok()) {
            locked(&seen).entry(id).or_insert(now);
        }
    }
}

/// A pool in which every connection is open by now: later, the first transactions would wait for theirs.
async fn connect(url: &str) -> anyhow::Result<DatabaseConnection> {
    let mut options = ConnectOptions::new(url);
    options.max_connections(u32::try_from(CONNECTIONS)? + 1).sqlx_logging(false);
    // It would put another round trip before each transaction.
    options.test_before_acquire(false);
    let db = Database::connect(options).await?;
    let open = try_join_all((0..=CONNECTIONS).map(|_| db.begin())).await?;
    for tx in open {
        tx.commit().await?;
    }
    Ok(db)
}

async fn write(
    db: &DatabaseConnection,
    topic: &str,
    events: u64,
    notify: bool,
) -> anyhow::Result<Vec<Written>> {
    let (wake, done) = (Wake::default(), CancellationToken::new());
    let notifier = notify.then(|| tokio::spawn(outbox::notify(db.clone(), wake.clone(), done.clone())));
    let bar = ProgressBar::new(events);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} transactions, {eta} left")?);
    let start = Instant::now() + Duration::from_millis(200);
    let writers = (0..CONNECTIONS).map(|writer| {
        let numbers = (writer..events).step_by(CONNECTIONS as usize);
        tokio::spawn(write_some(db.clone(), topic.to_owned(), start, numbers, wake.clone(), bar.clone()))
    });
    let mut written = Vec::new();
    for some in try_join_all(writers).await? {
        written.extend(some?);
    }
    bar.finish_and_clear();
    done.cancel();
    if let Some(notifier) = notifier {
        let Ok(()) = notifier.await?;
    }
    Ok(written)
}

async fn write_some(
    db: DatabaseConnection,
    topic: String,
    start: Instant,
    numbers: impl Iterator<Item = u64>,
    wake: Wake,
    bar: ProgressBar,
) -> anyhow::Result<Vec<Written>> {
    let headers = BTreeMap::from([(header::TRACEPARENT.to_owned(), traceparent(true))]);
    let mut written = Vec::new();
    for number in numbers {
        let due = start + Duration::from_micros(number * 1_000_000 / RATE);
        let aggregate_id = format!("bench-{}", number % AGGREGATES);
        let event = NewEvent {
            payload: serde_json::from_str(&payload(number, &aggregate_id))?,
            aggregate_id,
            topic: topic.clone(),
            event_type: EVENT_TYPE.to_owned(),
            headers: headers.clone(),
        };
        tokio::time::sleep_until(due.into()).await;
        let began = Instant::now();
        let tx = db.begin().await?;
        let id = outbox::append(&tx, event).await?;
        tx.commit().await?;
        let committed = Instant::now();
        wake.wake();
        written.push(Written { id: id.0, due, began, committed });
        bar.inc(1);
    }
    Ok(written)
}

/// The times of what was due after `warmup`, in microseconds.
struct Measured {
    readable: Histogram<u64>,
    scheduled: Histogram<u64>,
    late: Histogram<u64>,
}

fn measured(
    written: &[Written],
    seen: &BTreeMap<i64, Instant>,
    warmup: Duration,
) -> anyhow::Result<Measured> {
    let new = || Histogram::new(3);
    let mut times = Measured { readable: new()?, scheduled: new()?, late: new()? };
    let us = |from: Instant, to: Instant| u64::try_from(to.saturating_duration_since(from).as_micros());
    let first = written.iter().map(|one| one.due).min();
    for one in written.iter().filter(|one| first.is_some_and(|first| one.due >= first + warmup)) {
        times.late.record(us(one.due, one.began)?)?;
        // What never came is lost, and then there are no figures.
        let Some(at) = seen.get(&one.id) else { continue };
        times.readable.record(us(one.committed, *at)?)?;
        times.scheduled.record(us(one.due, *at)?)?;
    }
    Ok(times)
}

/// From the median towards the slowest, so that each step to the right is as much rarer as the one before.
fn curve(us: &Histogram<u64>) -> Vec<(f64, f64)> {
    let quantiles = (0..=35).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 10.0));
    quantiles.map(|quantile| (quantile, us.value_at_quantile(quantile) as f64 / 1000.0)).collect()
}
