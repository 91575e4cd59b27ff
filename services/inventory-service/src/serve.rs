//! The running service: the consumer and the admin port, under one supervisor.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use messaging::{ApplyError, ConsumeMode, Consumer, admin};
use runtime::{
    Health, Supervisor,
    fault::{CrashPoint, crash_if_armed},
    serve_admin,
};
use sea_orm::DatabaseConnection;
use tokio_util::sync::CancellationToken;

use crate::{Error, app::reserve_stock, consumer::Delivery, decode, settings::Settings};

/// Names this consumer in `processed_outbox_ids` and in dead letter topics.
const CONSUMER: &str = "inventory-service";

const TOPICS_TIMEOUT: Duration = Duration::from_secs(5);
const TOPICS_AGAIN: Duration = Duration::from_secs(1);

/// What the command line adds to the settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Stop when the topics are read to their end.
    pub exit_when_idle: bool,
    /// Print an `INSERT` or `DUP` line for each event, and the sums at the end.
    pub print_records: bool,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Events that took effect.
    pub inserted: AtomicU64,
    /// Events that had taken effect before.
    pub skipped: AtomicU64,
    /// Records that became dead letters.
    pub dead_letters: AtomicU64,
}

impl Tally {
    fn print(&self) {
        let (inserted, skipped) = (self.inserted.load(Relaxed), self.skipped.load(Relaxed));
        let dead = self.dead_letters.load(Relaxed);
        let mut line =
            format!("processed={} inserted={inserted} skipped={skipped}", inserted + skipped + dead);
        if dead > 0 {
            line += &format!(" dead_letters={dead}");
        }
        let _gone = writeln!(std::io::stdout().lock(), "{line}");
    }
}

/// Consumes until `shutdown`, or until idle; counts in `tally`.
///
/// # Errors
/// Settings that make no pool or consumer; a task that failed.
pub async fn serve(
    settings: Settings,
    options: Options,
    tally: Arc<Tally>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let db = database::connect(&settings.database).await?;
    let health = Health::default();
    health.not_ready("topics", "not looked at yet");
    let mode = if options.exit_when_idle { ConsumeMode::UntilIdle } else { ConsumeMode::Forever };
    let topic = settings.topics.inventory.clone();

    let mut tasks = Supervisor::new(shutdown.clone());
    let admin = shutdown.child_token();
    tasks.spawn("admin", serve_admin(settings.admin.address, health.clone(), admin.clone()));
    let (pool, counts) = (db.clone(), Arc::clone(&tally));
    let grace = Duration::from_millis(settings.drain_grace_ms);
    tasks.spawn("consumer", async move {
        topics_as_declared(&settings, &health, &shutdown).await;
        let consumer = Consumer::new(&settings.kafka, &settings.consumer, CONSUMER)?;
        let apply = |batch: Vec<Arc<Delivery>>| {
            apply(pool.clone(), topic.clone(), options.print_records, Arc::clone(&counts), batch)
        };
        let done = consumer.run(decode, apply, mode, shutdown).await?;
        counts.dead_letters.fetch_add(done.dead_letters, Relaxed);
        admin.cancel();
        Ok::<(), messaging::Error>(())
    });
    tasks.run(grace).await?;
    db.close().await?;
    if options.print_records {
        tally.print();
    }
    Ok(())
}

/// Waits until the topics are there with as many partitions as declared, or for `shutdown`.
async fn topics_as_declared(settings: &Settings, health: &Health, shutdown: &CancellationToken) {
    while let Err(error) = admin::check(&settings.kafka, &settings.consumer.topics, TOPICS_TIMEOUT).await {
        tracing::warn!(%error, "not consuming yet");
        health.not_ready("topics", error.to_string());
        tokio::select! {
            () = tokio::time::sleep(TOPICS_AGAIN) => {}
            () = shutdown.cancelled() => return,
        }
    }
    health.ready("topics");
}

async fn apply(
    db: DatabaseConnection,
    topic: String,
    print_records: bool,
    tally: Arc<Tally>,
    batch: Vec<Arc<Delivery>>,
) -> Result<(), ApplyError> {
    let events: Vec<_> = batch.iter().map(|one| (&one.envelope, &one.event)).collect();
    let new = reserve_stock(&db, CONSUMER, &topic, &events).await?;
    crash_if_armed(CrashPoint::AfterCommitBeforeOffset, || {
        format!("{} event(s) took effect, no offset is committed", batch.len())
    });
    for (delivery, new) in batch.iter().zip(new) {
        let count = if new { &tally.inserted } else { &tally.skipped };
        count.fetch_add(1, Relaxed);
        if print_records {
            print(delivery, new);
        }
    }
    Ok(())
}

fn print(delivery: &Delivery, new: bool) {
    let envelope = &delivery.envelope;
    // A reader that has gone away is no reason to stop consuming.
    let _gone = writeln!(
        std::io::stdout().lock(),
        "{} outbox_id={} aggregate={} type={} at={}",
        if new { "INSERT" } else { "DUP" },
        envelope.outbox_id,
        envelope.aggregate_id,
        envelope.event_type,
        delivery.place
    );
}
