//! How fast a publisher works off what has piled up, and at what cost.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use messaging::{Ends, Received};
use serde::Serialize;
use tokio_postgres::Client;

use crate::output::note;

use super::{
    Args,
    ground::{Ground, Part, READ_TIMEOUT, TIMEOUT},
    judge::{Check, Judge},
    meter::{Meter, Span, wait_for_quiet, wal_position},
    running::{Running, make_outbox},
    seed::fill,
};

/// Rows a transaction of those that write what is to be drained.
const ROWS: usize = 10;

/// Between two looks at the topic.
const LOOK: Duration = Duration::from_millis(20);
/// Between two points of a plot.
const SAMPLE: Duration = Duration::from_millis(100);
/// A topic that has not grown for so long will not grow; what is missing is then counted as lost.
const STALLED: Duration = Duration::from_secs(30);
/// For the marks of the last batch, which come after its records.
const LAST_MARKS: Duration = Duration::from_millis(100);

/// How many events were there, how long after the begin.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) events: i64,
}

/// One drain.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Round {
    pub(crate) span: Span,
    /// What the log of Postgres grew by when the events were written, in bytes.
    pub(crate) insert_wal_bytes: i64,
    pub(crate) samples: Vec<Sample>,
}

/// All drains.
#[derive(Debug, Serialize)]
pub(crate) struct Drained {
    pub(crate) rounds: Vec<Round>,
    /// The most memory that the publisher has had resident.
    pub(crate) resident_mb: f64,
}

impl Drained {
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.rounds.iter().map(|round| round.span.clone()).collect()
    }
}

/// A publisher, halted but while it drains, with its outbox and its topic.
pub(crate) struct Drain<'g> {
    ground: &'g Ground,
    part: Part,
    publisher: Running,
    client: Client,
    topic: String,
    ends: Ends,
    written: u64,
    rounds: Vec<Round>,
}

impl<'g> Drain<'g> {
    /// Starts a publisher with these settings more and lets it work off `warmup` events.
    pub(crate) async fn open(
        ground: &'g Ground,
        part: Part,
        settings: &[(&str, String)],
        warmup: u64,
    ) -> anyhow::Result<Self> {
        let client = make_outbox(ground, part).await?;
        let topic = ground.topic(part).await?;
        let ends = Ends::of(&ground.kafka()?, &topic, TIMEOUT).await?;
        let mut publisher = Running::publisher(ground, part, settings)?;
        warm_up(ground, part, &ends, warmup, &mut publisher, &client).await?;
        publisher.halt()?;
        Ok(Self { ground, part, publisher, client, topic, ends, written: warmup, rounds: Vec::new() })
    }

    /// Writes events while the publisher is halted, lets it go on, and measures until all are in the topic. Returns
    /// whether all came.
    pub(crate) async fn round(&mut self, args: &Args) -> anyhow::Result<bool> {
        let before = wal_position(&self.client).await?;
        fill(self.ground, self.part, &self.topic, args.events, ROWS).await?;
        let insert_wal_bytes = wal_position(&self.client).await? - before;
        self.written += args.events;
        rest(&self.client).await?;
        wait_for_quiet(self.ground, args.quiet_wait).await?;

        let meter = Meter::start(self.ground, Some(self.publisher.pid()?), &self.client).await?;
        self.publisher.go_on()?;
        let samples = reach(&self.ends, self.written, &mut self.publisher).await?;
        tokio::time::sleep(LAST_MARKS).await;
        let (seconds, came) = samples.last().map_or((0.0, 0), |last| (last.seconds, last.events));
        let span = meter.stop(args.events, seconds, &self.client).await?;
        note(format_args!("  {}: {:.0} events/s", self.part.name(), span.rate()));
        all_marked(&self.client, STALLED).await?;
        self.publisher.halt()?;
        self.rounds.push(Round { span, insert_wal_bytes, samples });
        Ok(u64::try_from(came)? >= args.events)
    }

    /// Ends the publisher and reads the topic.
    pub(crate) async fn close(self) -> anyhow::Result<(Check, Drained)> {
        self.publisher.go_on()?;
        let resident_mb = self.publisher.close().await?;
        let check = judge(self.ground, &self.topic, self.written, &self.client).await?;
        Ok((check, Drained { rounds: self.rounds, resident_mb }))
    }
}

/// Lets a part's publisher work off `events` events, the first of its outbox. An outbox in use is also one whose
/// statistics Postgres knows.
pub(crate) async fn warm_up(
    ground: &Ground,
    part: Part,
    ends: &Ends,
    events: u64,
    publisher: &mut Running,
    client: &Client,
) -> anyhow::Result<()> {
    fill(ground, part, ends.topic(), events, ROWS).await?;
    reach(ends, events, publisher).await?;
    all_marked(client, STALLED).await?;
    rest(client).await
}

/// Writes a part's log and tables to the disk, so that this does not fall into what is measured.
pub(crate) async fn rest(client: &Client) -> anyhow::Result<()> {
    client.batch_execute("vacuum analyze").await?;
    client.batch_execute("checkpoint").await?;
    Ok(())
}

/// Watches until the topic has `events` records in all, or grows no more. Returns how it grew.
pub(crate) async fn reach(ends: &Ends, events: u64, publisher: &mut Running) -> anyhow::Result<Vec<Sample>> {
    let (began, mut moved) = (Instant::now(), Instant::now());
    let events = i64::try_from(events)?;
    let before = ends.sum().await?;
    let mut samples = vec![Sample { seconds: 0.0, events: 0 }];
    let mut last = before;
    let bar = ProgressBar::new(u64::try_from(events - before).unwrap_or_default());
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} events in Kafka, {eta} left")?);
    while last < events && moved.elapsed() < STALLED {
        tokio::time::sleep(LOOK).await;
        let now = ends.sum().await?;
        if now == last {
            publisher.must_run()?;
            continue;
        }
        (last, moved) = (now, Instant::now());
        let sample = Sample { seconds: began.elapsed().as_secs_f64(), events: now - before };
        bar.set_position(u64::try_from(sample.events).unwrap_or_default());
        let due = samples.last().is_none_or(|last| sample.seconds - last.seconds >= SAMPLE.as_secs_f64());
        if due || now >= events {
            samples.push(sample);
        }
    }
    bar.finish_and_clear();
    Ok(samples)
}

/// Waits until every row is marked, at most `limit`.
async fn all_marked(client: &Client, limit: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + limit;
    while unmarked(client).await? > 0 && Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn unmarked(client: &Client) -> anyhow::Result<i64> {
    let sql = "select count(*) from outbox where published_at is null";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

/// Reads a part's topic whole, which is to hold rows 1 to `events` of its outbox, each once; all must be marked.
pub(crate) async fn judge(
    ground: &Ground,
    topic: &str,
    events: u64,
    client: &Client,
) -> anyhow::Result<Check> {
    note("  reading the topic whole ...");
    let take = |judge: &mut Judge, record: Received| judge.take(&record);
    let judge = messaging::fold(&ground.kafka()?, topic, READ_TIMEOUT, Judge::of(events), take).await?;
    let mut check = judge.verdict();
    check.none(u64::try_from(unmarked(client).await?)?, "not marked");
    let written: i64 = client.query_one("select count(*) from outbox", &[]).await?.try_get(0)?;
    check.none(events.abs_diff(u64::try_from(written)?), "more or fewer rows than were written");
    Ok(check)
}
