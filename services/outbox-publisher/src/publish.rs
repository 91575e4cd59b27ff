//! Runs a relay for each source, under one supervisor.

use std::{io::Write, sync::Arc, time::Duration};

use relay::{Mode, Observer, Published, Setup, Source, Target, Wake};
use runtime::{Health, Supervisor, serve_admin};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use crate::settings::{Settings, SourceSettings};

/// What the command line adds to the settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Stop when nothing is pending in any source.
    pub exit_when_drained: bool,
    /// Print a `PUB` line for each record that the broker has.
    pub print_records: bool,
}

/// Why the publisher ended otherwise than it should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to do.
    #[error("no outbox to publish: set sources.<name>.url, for example BREW__SOURCES__ORDERS__URL")]
    NoSources,
    /// A source without a database.
    #[error("sources.{0}.url is empty")]
    NoUrl(String),
    /// The two drain times do not fit together.
    #[error("drain_grace_ms must not be shorter than relay.drain_grace_ms")]
    Drain,
    /// The relay's settings do not fit together.
    #[error(transparent)]
    Relay(#[from] relay::Error),
    /// The outbox's tables cannot be made.
    #[error(transparent)]
    Migrate(#[from] database::Error),
    /// A task failed.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
}

/// Publishes every source until `shutdown`, or until all are drained.
///
/// # Errors
/// Settings that make no sense, found before anything is connected; a task that failed.
pub async fn publish(settings: Settings, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    check(&settings)?;
    let health = Health::default();
    let mut tasks = Supervisor::new(shutdown.clone());
    let relays = shutdown.child_token();
    let mode = if options.exit_when_drained { Mode::UntilDrained } else { Mode::Forever };
    let target = Target { kafka: settings.kafka.clone(), declared: declared(&settings) };
    let observer = options.print_records.then(|| Arc::new(print) as Observer);
    let mut running = Vec::new();
    for (name, source) in &settings.sources {
        let source = of_settings(name, source);
        if mode == Mode::Forever {
            let kept = relay::upkeep(
                source.clone(),
                settings.relay.clone(),
                settings.upkeep.clone(),
                relays.clone(),
            );
            tasks.spawn("upkeep", async move {
                kept.await;
                Ok::<(), relay::Error>(())
            });
        }
        let setup = Setup {
            source,
            target: target.clone(),
            options: settings.relay.clone(),
            mode,
            health: health.clone(),
            observer: observer.clone(),
            wake: Wake::default(),
        };
        running.push(relay::run(setup, relays.clone()));
    }
    let admin = relays.clone();
    tasks.spawn("admin", serve_admin(settings.admin.address, health, admin.clone()));
    tasks.spawn("relays", async move {
        let reports = futures::future::try_join_all(running).await?;
        let published: usize = reports.iter().map(|report| report.published).sum();
        tracing::info!(published, "relays ended");
        // Drained: nothing is left for the admin port to tell.
        admin.cancel();
        Ok::<(), relay::Error>(())
    });
    Ok(tasks.run(Duration::from_millis(settings.drain_grace_ms)).await?)
}

fn of_settings(name: &str, source: &SourceSettings) -> Source {
    let plain = Source::new(name, source.url.expose_secret());
    let direct_url = match source.direct_url.expose_secret() {
        "" => plain.url.clone(),
        direct => direct.to_owned(),
    };
    let (listen, prepared, workers) = (source.listen, source.prepared_statements, source.workers);
    Source { direct_url, listen, prepared, workers, delivery: source.delivery, ..plain }
}

pub(crate) fn check(settings: &Settings) -> Result<(), Error> {
    settings.relay.validate()?;
    settings.upkeep.validate()?;
    if settings.drain_grace_ms < settings.relay.drain_grace_ms {
        return Err(Error::Drain);
    }
    if settings.sources.is_empty() {
        return Err(Error::NoSources);
    }
    match settings.sources.iter().find(|(_, source)| source.url.expose_secret().is_empty()) {
        Some((name, _)) => Err(Error::NoUrl(name.clone())),
        None => Ok(()),
    }
}

fn declared(settings: &Settings) -> std::collections::BTreeMap<String, usize> {
    events::topic::ALL.iter().map(|topic| ((*topic).to_owned(), settings.kafka.partitions)).collect()
}

fn print(record: &Published<'_>) {
    let mut out = std::io::stdout().lock();
    // A reader that has gone away is no reason to stop publishing.
    let _gone = writeln!(
        out,
        "PUB outbox_id={} aggregate={} topic={} partition={} offset={}",
        record.outbox_id, record.aggregate_id, record.topic, record.ack.partition, record.ack.offset
    );
}
