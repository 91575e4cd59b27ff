//! Starting and stopping the services.

use std::time::Duration;

use anyhow::{Context, bail};
use nix::{sys::signal::Signal, unistd::Pid};
use tokio::process::Child;

use crate::{
    lab::{self, database_url},
    local::State,
};

/// A running shop; its processes are killed when it is dropped.
pub(crate) struct Shop {
    /// Of order-service's gRPC.
    pub(crate) orders: String,
    running: Vec<(&'static str, Child)>,
}

/// How many publishers: more than one, so that they share the shards.
const PUBLISHERS: usize = 2;

/// Starts the whole shop and waits until orders are accepted.
pub(crate) async fn open(state: &State, gateway_misbehaves_percent: u32) -> anyhow::Result<Shop> {
    let url = |database| database_url(state.postgres_url()?, database);
    let (orders, gateway) = (free_address()?, free_address()?);
    let mut shop = Shop { orders: orders.clone(), running: Vec::new() };

    let mut command = lab::service("payment-gateway")?;
    command
        .env("BREW__DATABASE__URL", url(lab::GATEWAY)?)
        .env("BREW__HTTP__ADDRESS", &gateway)
        .env("BREW__MISBEHAVE__PERCENT", gateway_misbehaves_percent.to_string())
        .env("BREW__MISBEHAVE__HANG_MS", "5000");
    shop.start("payment-gateway", command)?;

    let mut command = lab::service("payment-service")?;
    command
        .env("BREW__DATABASE__URL", url(lab::PAYMENTS)?)
        .env("BREW__KAFKA__BROKERS", state.brokers()?)
        .env("BREW__GRPC__ADDRESS", "127.0.0.1:0")
        .env("BREW__GATEWAY__URL", format!("http://{gateway}"))
        .env("BREW__GATEWAY__TIMEOUT_MS", "1000");
    shop.start("payment-service", command)?;

    shop.start("inventory-service", lab::inventory_service(state)?)?;

    for _ in 0..PUBLISHERS {
        let mut command = lab::service("outbox-publisher")?;
        command.env("BREW__KAFKA__BROKERS", state.brokers()?);
        for (name, database) in
            [("ORDERS", lab::ORDERS), ("INVENTORY", lab::INVENTORY), ("PAYMENTS", lab::PAYMENTS)]
        {
            command.env(format!("BREW__SOURCES__{name}__URL"), url(database)?);
        }
        shop.start("outbox-publisher", command)?;
    }

    let mut command = lab::order_service(state)?;
    command.env("BREW__GRPC__ADDRESS", &orders).env("BREW__ORDERS__BACKGROUND", "true");
    shop.start("order-service", command)?;
    shop.answers().await?;
    Ok(shop)
}

impl Shop {
    fn start(&mut self, name: &'static str, mut command: tokio::process::Command) -> anyhow::Result<()> {
        let child = command.stdout(std::process::Stdio::null()).spawn();
        self.running.push((name, child.with_context(|| format!("start {name}"))?));
        Ok(())
    }

    async fn answers(&mut self) -> anyhow::Result<()> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while tokio::net::TcpStream::connect(&self.orders).await.is_err() {
            if tokio::time::Instant::now() > deadline {
                bail!("order-service does not answer");
            }
            for (name, child) in &mut self.running {
                if let Some(end) = child.try_wait()? {
                    bail!("{name} ended with {end}");
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Kills one process of that name for real, and starts nothing in its place. False if there is none left.
    pub(crate) async fn kill_one(&mut self, name: &str) -> anyhow::Result<bool> {
        let Some(position) = self.running.iter().position(|(running, _)| *running == name) else {
            return Ok(false);
        };
        let (_, mut child) = self.running.swap_remove(position);
        child.kill().await?;
        Ok(true)
    }

    /// Ends every service by SIGTERM and waits; each must end well.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        for (_, child) in &self.running {
            if let Some(pid) = child.id() {
                nix::sys::signal::kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
            }
        }
        let mut bad = Vec::new();
        for (name, child) in &mut self.running {
            let end = child.wait().await?;
            if !end.success() {
                bad.push(format!("{name} ended with {end}"));
            }
        }
        if bad.is_empty() { Ok(()) } else { bail!("{}", bad.join("; ")) }
    }
}

fn free_address() -> anyhow::Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
