//! The topics of a deployed stack, made by a job before the services begin.

use std::{process::ExitCode, time::Duration};

use messaging::Error;
use tokio::time::Instant;

use crate::{
    lab,
    output::{line, note},
};

/// Between two tries while the broker is away.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where Kafka is: host:port, or several with commas between.
    #[arg(long, env = "KAFKA_BROKERS", default_value = "127.0.0.1:9092")]
    brokers: String,
    /// Copies of each partition, at most as many as there are brokers. All but one of them must have a record before it
    /// is acknowledged (min.insync.replicas).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10))]
    replication: i32,
    /// How long to wait for a broker that is away.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    wait: Duration,
}

/// Exit codes: 0 all are there as they should be; else 1: the broker is away or refuses, or a topic has another number
/// of partitions, which is not changed (docs/runbook.md says how).
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.wait;
    loop {
        match lab::make_topics(&args.brokers, args.replication).await {
            Ok(lines) => {
                lines.into_iter().for_each(line);
                return Ok(ExitCode::SUCCESS);
            }
            Err(Error::BrokerAway(place)) if Instant::now() + PAUSE < deadline => {
                note(format_args!("waiting for a broker at {place} ..."));
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
