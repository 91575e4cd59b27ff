//! The services as processes: the same binaries that are deployed, beside this one.

use std::{
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::{local::State, output::line};

use super::tables::{GATEWAY, INVENTORY, ORDERS, PAYMENTS, database_url};

/// How a publisher of order-service's outbox delivers.
#[derive(clap::Args)]
pub(crate) struct Delivery {
    /// What a reader of what is committed meets after a crash: some events twice, or each once.
    #[arg(long, default_value = "at-least-once", value_parser = ["at-least-once", "exactly-once"])]
    delivery: String,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { delivery: "at-least-once".to_owned() }
    }
}

/// What a service printed, and how it ended.
pub(crate) struct Run {
    pub(crate) lines: Vec<String>,
    pub(crate) end: ExitStatus,
    /// It aborted, as a crash point does.
    pub(crate) crashed: bool,
}

impl Run {
    pub(crate) fn must_succeed(self) -> anyhow::Result<Self> {
        if self.end.success() { Ok(self) } else { bail!("the service ended with {}", self.end) }
    }

    pub(crate) fn starting_with(&self, prefix: &str) -> usize {
        self.lines.iter().filter(|line| line.starts_with(prefix)).count()
    }
}

pub(crate) async fn migrate(state: &State) -> anyhow::Result<()> {
    let services = [
        ("order-service", ORDERS),
        ("inventory-service", INVENTORY),
        ("payment-service", PAYMENTS),
        ("payment-gateway", GATEWAY),
    ];
    for (name, database) in services {
        let mut command = service(name)?;
        command.env("BREW__DATABASE__URL", database_url(state.postgres_url()?, database)?);
        run(command.arg("migrate"), false).await?.must_succeed()?;
    }
    Ok(())
}

/// A publisher of order-service's outbox that aborts after the acks of its first batch.
pub(crate) async fn chaos_kill_publisher(
    state: &State,
    batch_size: u32,
    delivery: &Delivery,
    echo: bool,
) -> anyhow::Result<Run> {
    let mut publisher = publisher(state, delivery)?;
    publisher.env("BREW_FAULT_INJECTION", "after-ack-before-mark");
    // Alone here, so it need not leave shards to others: its first batch is as large as asked for.
    publisher.env("BREW__RELAY__MAX_SHARDS", "64");
    publisher.args(["--batch-size", &batch_size.to_string()]);
    run(&mut publisher, echo).await
}

/// A publisher of every service's outbox, until all are drained.
pub(crate) async fn run_publisher(
    state: &State,
    batch_size: Option<u32>,
    delivery: &Delivery,
    echo: bool,
) -> anyhow::Result<Run> {
    let mut publisher = publisher(state, delivery)?;
    publisher.env("BREW__SOURCES__INVENTORY__URL", database_url(state.postgres_url()?, INVENTORY)?);
    if let Some(size) = batch_size {
        publisher.args(["--batch-size", &size.to_string()]);
    }
    run(&mut publisher, echo).await
}

pub(crate) async fn run_consumer(state: &State, echo: bool) -> anyhow::Result<Run> {
    let mut consumer = inventory_service(state)?;
    consumer.args(["--exit-when-idle", "--print-records"]);
    run(&mut consumer, echo).await
}

pub(crate) fn order_service(state: &State) -> anyhow::Result<Command> {
    let mut command = service("order-service")?;
    command
        .env("BREW__DATABASE__URL", database_url(state.postgres_url()?, ORDERS)?)
        .env("BREW__KAFKA__BROKERS", state.brokers()?)
        // In the lab nothing moves but what a person does.
        .env("BREW__ORDERS__BACKGROUND", "false");
    Ok(command)
}

fn inventory_service(state: &State) -> anyhow::Result<Command> {
    let mut command = service("inventory-service")?;
    command
        .env("BREW__DATABASE__URL", database_url(state.postgres_url()?, INVENTORY)?)
        .env("BREW__GRPC__ADDRESS", "127.0.0.1:0")
        .env("BREW__KAFKA__BROKERS", state.brokers()?);
    Ok(command)
}

fn publisher(state: &State, delivery: &Delivery) -> anyhow::Result<Command> {
    let mut command = service("outbox-publisher")?;
    command
        .args(["--exit-when-drained", "--print-records"])
        .env("BREW__SOURCES__ORDERS__URL", database_url(state.postgres_url()?, ORDERS)?)
        .env("BREW__SOURCES__ORDERS__DELIVERY", &delivery.delivery)
        .env("BREW__KAFKA__BROKERS", state.brokers()?);
    Ok(command)
}

pub(crate) fn service(name: &str) -> anyhow::Result<Command> {
    let program: PathBuf = std::env::current_exe()?.with_file_name(name);
    if !program.exists() {
        bail!("{} is not built; `make build` builds it", program.display());
    }
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).kill_on_drop(true).env("BREW__ADMIN__ADDRESS", "127.0.0.1:0");
    if std::env::var_os("RUST_LOG").is_none() {
        // Warnings of the client library about a broker that has just started would bury the lines that count.
        command.env("RUST_LOG", "error");
    }
    Ok(command)
}

/// Runs a service to its end; prints its lines as they come if `echo`.
async fn run(command: &mut Command, echo: bool) -> anyhow::Result<Run> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("start a service")?;
    let output = child.stdout.take().context("a service without output")?;
    let mut reader = BufReader::new(output).lines();
    let mut lines = Vec::new();
    while let Some(text) = reader.next_line().await? {
        if echo {
            line(&text);
        }
        lines.push(text);
    }
    let end = child.wait().await?;
    let crashed = end.signal() == Some(Signal::SIGABRT as i32);
    Ok(Run { lines, end, crashed })
}
