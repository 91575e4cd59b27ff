//! The measured services: the same binaries that are deployed, beside this one.

use std::process::Stdio;

use anyhow::{Context, bail};
use nix::{sys::signal::Signal, unistd::Pid};
use tokio::process::Child;

use crate::lab;

use super::{
    ground::{Ground, Part},
    meter::peak_resident_mb,
};

/// A running service; killed when dropped.
pub(crate) struct Running {
    name: &'static str,
    child: Child,
}

impl Running {
    /// Starts `name` with these settings; what the environment sets holds too.
    pub(crate) fn start(name: &'static str, settings: &[(&str, String)]) -> anyhow::Result<Self> {
        let mut command = lab::service(name)?;
        command.envs(settings.iter().map(|(name, value)| (*name, value.as_str())));
        let child = command.stdout(Stdio::null()).spawn().with_context(|| format!("start {name}"))?;
        Ok(Self { name, child })
    }

    /// A publisher of a part's outbox, with these settings more.
    pub(crate) fn publisher(ground: &Ground, part: Part, more: &[(&str, String)]) -> anyhow::Result<Self> {
        let url = ("BREW__SOURCES__BENCH__URL", ground.url(part)?);
        let settings = [url, ("BREW__KAFKA__BROKERS", ground.kafka()?.brokers)];
        Self::start("outbox-publisher", &[&settings, more].concat())
    }

    pub(crate) fn pid(&self) -> anyhow::Result<i32> {
        Ok(i32::try_from(self.child.id().with_context(|| format!("{} has ended", self.name))?)?)
    }

    /// Stops it where it stands, until it is to [go on](Self::go_on).
    pub(crate) fn halt(&self) -> anyhow::Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    pub(crate) fn go_on(&self) -> anyhow::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        nix::sys::signal::kill(Pid::from_raw(self.pid()?), signal)
            .with_context(|| format!("signal {}", self.name))
    }

    /// Fails if it has ended.
    pub(crate) fn must_run(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(end) => bail!("{} ended with {end}", self.name),
            None => Ok(()),
        }
    }

    /// Ends it, which must go well, and returns the most memory that it has had resident, in megabytes.
    pub(crate) async fn close(mut self) -> anyhow::Result<f64> {
        let resident_mb = peak_resident_mb(self.pid()?)?;
        self.signal(Signal::SIGTERM)?;
        let end = self.child.wait().await?;
        if !end.success() {
            bail!("{} ended with {end}", self.name);
        }
        Ok(resident_mb)
    }
}

/// Brings a part's database to a service's schema.
pub(crate) async fn migrate(name: &str, arguments: &[&str], setting: (&str, String)) -> anyhow::Result<()> {
    let mut command = lab::service(name)?;
    command.args(arguments).env(setting.0, setting.1).stdout(Stdio::null());
    let end = command.status().await.with_context(|| format!("run {name}"))?;
    if !end.success() {
        bail!("{name} {} ended with {end}", arguments.join(" "));
    }
    Ok(())
}

/// Makes a part's database with an outbox in it, as for a service of any other project.
pub(crate) async fn make_outbox(ground: &Ground, part: Part) -> anyhow::Result<tokio_postgres::Client> {
    let client = ground.database(part).await?;
    let url = ("BREW__SOURCES__BENCH__URL", ground.url(part)?);
    migrate("outbox-publisher", &["migrate", "--name", "bench"], url).await?;
    Ok(client)
}
