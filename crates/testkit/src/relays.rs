//! Relays in this process.

use std::collections::BTreeMap;

use messaging::KafkaOptions;

use relay::{Mode, Options, Report, Setup, Source, Target, Wake};
use runtime::Health;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Options that suit a test: small batches, so that replicas meet often.
#[must_use]
pub fn relay_options() -> Options {
    Options {
        batch_size: 100,
        max_shards: 8,
        poll_min_ms: 1,
        poll_max_ms: 10,
        send_deadline_ms: 10_000,
        send_deadline_cap_ms: 20_000,
        idle_in_transaction_timeout_ms: 30_000,
        keepalive_ms: 45_000,
        connect_timeout_ms: 10_000,
        drain_grace_ms: 15_000,
        unknown_topic_grace_ms: 600_000,
        parked_aggregates_wait: true,
    }
}

/// A relay of the outbox at `url` with one worker, which does not listen.
#[must_use]
pub fn relay_setup(url: &str, kafka: &KafkaOptions, options: Options, mode: Mode) -> Setup {
    let source = Source::new("test", url);
    let target = Target { kafka: kafka.clone(), declared: BTreeMap::new() };
    let (health, wake) = (Health::default(), Wake::default());
    Setup { source, target, options, mode, health, observer: None, wake }
}

/// Starts a relay of the outbox at `url` with one worker.
#[must_use]
pub fn start_relay(
    url: &str,
    kafka: &KafkaOptions,
    options: Options,
    mode: Mode,
    shutdown: &CancellationToken,
) -> JoinHandle<Report> {
    let setup = relay_setup(url, kafka, options, mode);
    let run = relay::run(setup, shutdown.clone());
    tokio::spawn(async move { run.await.unwrap() })
}

/// Runs a relay until nothing is pending.
///
/// # Panics
/// When it fails.
pub async fn drain(url: &str, kafka: &KafkaOptions) -> Report {
    let shutdown = CancellationToken::new();
    start_relay(url, kafka, relay_options(), Mode::UntilDrained, &shutdown).await.unwrap()
}
