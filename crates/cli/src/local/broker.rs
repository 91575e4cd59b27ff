//! The embedded broker as a process of its own.

use std::{path::Path, time::Duration};

use anyhow::{Context, bail};
use messaging::EmbeddedBroker;
use tokio::signal::unix::{SignalKind, signal};

use crate::{lab, output::line};

use super::process::Process;

const PREFIX: &str = "embedded broker at ";

#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn serve(_: Args) -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    // This broker cannot make topics when asked, so it has them from the start.
    let topics: Vec<(String, usize)> =
        lab::topic_specs(1).into_iter().map(|spec| (spec.name, spec.partitions)).collect();
    let broker = EmbeddedBroker::start(&topics)?;
    line(format_args!("{PREFIX}{}", broker.brokers()));
    term.recv().await;
    Ok(())
}

/// Where the broker that writes to `log` says that it is.
pub(crate) async fn announced(log: &Path, process: &Process) -> anyhow::Result<String> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let text = std::fs::read_to_string(log).context("read the embedded broker's log")?;
        if let Some(brokers) = text.lines().find_map(|text| text.strip_prefix(PREFIX)) {
            return Ok(brokers.to_owned());
        }
        if !process.alive() || tokio::time::Instant::now() > deadline {
            bail!("the embedded broker did not start, see {}", log.display());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
