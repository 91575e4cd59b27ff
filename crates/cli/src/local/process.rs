//! Processes that outlive this command, ended later by their id.

use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use nix::{sys::signal::Signal, unistd::Pid};
use serde::{Deserialize, Serialize};

/// A process, told from a later one with the same id by when it began.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) began: u64,
}

impl Process {
    /// The process that has this id now.
    pub(crate) fn find(pid: i32) -> anyhow::Result<Self> {
        let began = began(pid).with_context(|| format!("process {pid} is gone"))?;
        Ok(Self { pid, began })
    }

    /// Starts `command` in a process group of its own (a Ctrl-C here does not reach it), writing to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::create(log).with_context(|| format!("write {}", log.display()))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {program}"))?;
        Self::find(i32::try_from(child.id())?)
    }

    pub(crate) fn alive(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// Ends it: `signal`, then SIGKILL after half a minute.
    pub(crate) async fn stop(&self, signal: Signal) -> anyhow::Result<()> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        self.send(signal)?;
        while self.alive() {
            if tokio::time::Instant::now() > deadline {
                self.send(Signal::SIGKILL)?;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn send(&self, signal: Signal) -> anyhow::Result<()> {
        if self.alive() {
            nix::sys::signal::kill(Pid::from_raw(self.pid), signal)
                .with_context(|| format!("signal process {}", self.pid))?;
        }
        Ok(())
    }
}

/// When process `pid` began, in clock ticks since boot (field 22 of `/proc/<pid>/stat`, see proc(5)); none if it is
/// gone or a zombie.
fn began(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may hold anything, so what follows is counted from the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// A port of the loopback that is free now.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// Whether `program` can be run at all.
pub(crate) async fn runs(program: &str, arguments: &[&str]) -> bool {
    let status = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    matches!(tokio::time::timeout(Duration::from_secs(10), status).await, Ok(Ok(status)) if status.success())
}
