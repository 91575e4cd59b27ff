//! Services as processes.

use std::process::{ExitStatus, Output, Stdio};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::process::{Child, Command};

/// A running service; killed when dropped.
pub struct Service(Child);

impl Service {
    /// Starts `program` with these settings (`BREW__...`) and arguments.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(program: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Self {
        Self(command(program, arguments, settings).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process has ended.
    pub fn signal(&self, signal: Signal) {
        let pid = self.0.id().expect("a running process");
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When the wait fails.
    pub async fn ended(mut self) -> ExitStatus {
        self.0.wait().await.unwrap()
    }
}

/// Runs `program` with these settings and arguments to its end.
///
/// # Panics
/// When it cannot be started.
pub async fn run_to_end(program: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    command(program, arguments, settings).output().await.unwrap()
}

fn command(program: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("BREW__ADMIN__ADDRESS", "127.0.0.1:0")
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}
