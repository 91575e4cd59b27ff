//! Services as processes.

use std::process::{ExitStatus, Output, Stdio};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

use crate::{TestDatabase, until};

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

/// An address on the loopback that nobody listens on now.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Asserts that `program`, on `database`, is ready while that is there and says why when it is not, on its admin port
/// and by `healthcheck`; that it lives on meanwhile; and that it is ready again.
///
/// # Panics
/// When an assertion fails.
pub async fn ready_while_the_database_is_there(
    program: &str,
    database: &TestDatabase,
    settings: &[(&str, &str)],
) {
    let name = database.url.rsplit('/').next().unwrap();
    let admin = free_address();
    let mut settings = settings.to_vec();
    settings.extend([
        ("BREW__DATABASE__URL", database.url.as_str()),
        ("BREW__DATABASE__ACQUIRE_TIMEOUT_MS", "500"),
        ("BREW__ADMIN__ADDRESS", &admin),
    ]);
    let _service = Service::start(program, &[], &settings);
    let ready = async |wanted: &str| {
        until(wanted, async || status_of(&admin, "/readyz").await.filter(|status| status.contains(wanted)))
            .await;
    };
    ready("200").await;
    let healthy = async || run_to_end(program, &["healthcheck"], &settings).await;
    assert!(healthy().await.status.success());
    let other = crate::database(Vec::new()).await.client().await;
    let away = format!(
        "alter database {name} allow_connections false;
         select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
    );
    other.batch_execute(&away).await.unwrap();
    ready("503").await;
    let unhealthy = healthy().await;
    assert!(!unhealthy.status.success());
    let said = String::from_utf8_lossy(&unhealthy.stderr).into_owned();
    assert!(said.contains("not ready: database: away"), "{said}");
    assert!(status_of(&admin, "/livez").await.unwrap().contains("200"), "alive all the same");
    other.batch_execute(&format!("alter database {name} allow_connections true")).await.unwrap();
    ready("200").await;
}

/// The first line of what the admin port answers.
async fn status_of(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.lines().next().map(str::to_owned)
}
