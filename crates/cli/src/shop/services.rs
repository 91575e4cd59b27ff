//! Starting, killing and stopping the services.

use std::time::Duration;

use anyhow::{Context, bail};
use nix::{sys::signal::Signal, unistd::Pid};
use tokio::process::Child;

use crate::{
    lab::{self, database_url},
    local::{Profile, State},
};

/// How many publishers: more than one, so that they share the shards.
const PUBLISHERS: usize = 2;

/// What it takes to start one service, again and again.
struct Spec {
    name: &'static str,
    settings: Vec<(&'static str, String)>,
}

impl Spec {
    fn start(&self) -> anyhow::Result<Child> {
        let mut command = lab::service(self.name)?;
        command.envs(self.settings.iter().map(|(name, value)| (*name, value.as_str())));
        command.stdout(std::process::Stdio::null()).spawn().with_context(|| format!("start {}", self.name))
    }
}

/// A running shop; its processes are killed when it is dropped.
pub(crate) struct Shop {
    /// Of order-service's gRPC.
    pub(crate) orders: String,
    /// Of inventory-service's gRPC.
    pub(crate) inventory: String,
    running: Vec<(Spec, Option<Child>)>,
}

/// What runs locally, with every database and topic that a shop needs.
pub(crate) async fn ground(profile: &Profile) -> anyhow::Result<State> {
    let state = State::running(profile)?;
    lab::db_init(&state).await?;
    lab::topic_create(&state).await?;
    Ok(state)
}

/// Starts the whole shop and waits until orders are accepted. So many of 100 calls to the provider go wrong.
pub(crate) async fn open(state: &State, misbehave_percent: u64) -> anyhow::Result<Shop> {
    let (orders, inventory, gateway) = (free_address()?, free_address()?, free_address()?);
    let mut running = Vec::new();
    for spec in specs(state, [&orders, &inventory, &gateway], misbehave_percent)? {
        let child = spec.start()?;
        running.push((spec, Some(child)));
    }
    let mut shop = Shop { orders, inventory, running };
    shop.answers().await?;
    Ok(shop)
}

fn specs(
    state: &State,
    [orders, inventory, gateway]: [&str; 3],
    misbehave_percent: u64,
) -> anyhow::Result<Vec<Spec>> {
    let url = |database| database_url(state.postgres_url()?, database);
    let brokers = || ("BREW__KAFKA__BROKERS", state.brokers().unwrap_or_default().to_owned());
    let database = |name| anyhow::Ok(("BREW__DATABASE__URL", url(name)?));
    let publisher = || {
        anyhow::Ok(Spec {
            name: "outbox-publisher",
            settings: vec![
                brokers(),
                ("BREW__SOURCES__ORDERS__URL", url(lab::ORDERS)?),
                ("BREW__SOURCES__INVENTORY__URL", url(lab::INVENTORY)?),
                ("BREW__SOURCES__PAYMENTS__URL", url(lab::PAYMENTS)?),
            ],
        })
    };
    let mut specs = vec![
        Spec {
            name: "payment-gateway",
            settings: vec![
                database(lab::GATEWAY)?,
                ("BREW__HTTP__ADDRESS", gateway.to_owned()),
                ("BREW__MISBEHAVE__PERCENT", misbehave_percent.to_string()),
                ("BREW__MISBEHAVE__HANG_MS", "3000".to_owned()),
                ("BREW__MISBEHAVE__SLOW_MS", "300".to_owned()),
            ],
        },
        Spec {
            name: "payment-service",
            settings: vec![
                database(lab::PAYMENTS)?,
                brokers(),
                ("BREW__GRPC__ADDRESS", "127.0.0.1:0".to_owned()),
                ("BREW__GATEWAY__URL", format!("http://{gateway}")),
                ("BREW__GATEWAY__TIMEOUT_MS", "1000".to_owned()),
                ("BREW__GATEWAY__RETRY_MAX_MS", "3000".to_owned()),
                ("BREW__GATEWAY__WORKERS", "8".to_owned()),
            ],
        },
        Spec {
            name: "inventory-service",
            settings: vec![
                database(lab::INVENTORY)?,
                brokers(),
                ("BREW__GRPC__ADDRESS", inventory.to_owned()),
            ],
        },
        Spec {
            name: "order-service",
            settings: vec![
                database(lab::ORDERS)?,
                brokers(),
                ("BREW__GRPC__ADDRESS", orders.to_owned()),
                // A storm on a slow machine is not to be mistaken for services that give no answer.
                ("BREW__ORDERS__ANSWER_TIMEOUT_MS", "180000".to_owned()),
            ],
        },
    ];
    for _ in 0..PUBLISHERS {
        specs.push(publisher()?);
    }
    if let Some(jaeger) = &state.jaeger {
        specs.iter_mut().for_each(|spec| spec.settings.extend(jaeger.variables()));
    }
    Ok(specs)
}

impl Shop {
    /// How many processes it has; each can be [killed](Self::kill).
    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    /// Waits until order-service answers.
    async fn answers(&mut self) -> anyhow::Result<()> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while tokio::net::TcpStream::connect(&self.orders).await.is_err() {
            if tokio::time::Instant::now() > deadline {
                bail!("order-service does not answer");
            }
            for (spec, child) in &mut self.running {
                if let Some(end) = child.as_mut().and_then(|child| child.try_wait().transpose()) {
                    bail!("{} ended with {}", spec.name, end?);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Kills process `number` for real (SIGKILL), waits until it is gone, and returns its name.
    pub(crate) async fn kill(&mut self, number: usize) -> anyhow::Result<&'static str> {
        let (spec, child) = self.running.get_mut(number).context("there is no such process")?;
        if let Some(mut child) = child.take() {
            child.kill().await?;
        }
        Ok(spec.name)
    }

    /// Starts process `number` again after it was killed.
    pub(crate) fn restart(&mut self, number: usize) -> anyhow::Result<()> {
        let (spec, child) = self.running.get_mut(number).context("there is no such process")?;
        if child.is_none() {
            *child = Some(spec.start()?);
        }
        Ok(())
    }

    /// Ends every process by SIGTERM and waits; each must end well.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        for child in self.running.iter().filter_map(|(_, child)| child.as_ref()) {
            if let Some(pid) = child.id() {
                nix::sys::signal::kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
            }
        }
        let mut bad = Vec::new();
        for (spec, child) in &mut self.running {
            let Some(child) = child else { continue };
            let end = child.wait().await?;
            if !end.success() {
                bad.push(format!("{} ended with {end}", spec.name));
            }
        }
        if bad.is_empty() { Ok(()) } else { bail!("{}", bad.join("; ")) }
    }
}

fn free_address() -> anyhow::Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
