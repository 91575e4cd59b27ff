//! A Kafka of one test's own, to be frozen, killed and started again.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use messaging::KafkaOptions;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::process::{Child, Command};
use uuid::Uuid;

/// A broker that no other test knows; ended and deleted when dropped.
pub struct Broker {
    profile: String,
    advertised: Option<String>,
    pid: Pid,
    /// Where it listens itself.
    pub address: String,
}

impl Broker {
    /// Starts one by `brew local up`. Clients are told to come to `advertised`, if it is given, else to the broker.
    ///
    /// # Panics
    /// When it does not start, or where Kafka is not run from its jars.
    pub async fn start(advertised: Option<String>) -> Self {
        let profile = format!("faults-{}", Uuid::new_v4().simple());
        let (pid, address) = up(&profile, advertised.as_deref()).await;
        Self { profile, advertised, pid, address }
    }

    /// As a client reaches it.
    #[must_use]
    pub fn options(&self) -> KafkaOptions {
        let brokers = self.advertised.clone().unwrap_or_else(|| self.address.clone());
        KafkaOptions { brokers, ..crate::kafka() }
    }

    /// Stops it in the middle of whatever it does; its sockets stay open.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it and waits for its end; what it had not written is lost.
    pub async fn kill(&self) {
        self.signal(Signal::SIGKILL);
        let proc = PathBuf::from(format!("/proc/{}/exe", self.pid));
        crate::until("the broker's end", async || (!proc.exists()).then_some(())).await;
    }

    /// Starts it again with its data, at the same address.
    ///
    /// # Panics
    /// When it does not start there.
    pub async fn restart(&mut self) {
        let (pid, address) = up(&self.profile, self.advertised.as_deref()).await;
        assert_eq!(address, self.address, "the broker has moved");
        self.pid = pid;
    }

    /// Starts a second broker of the same cluster, which leads and follows partitions but has no vote.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn second(&self) -> Second {
        let first = root().join(".brew").join(&self.profile).canonicalize().unwrap();
        let folder = first.join("second");
        std::fs::create_dir_all(&folder).unwrap();
        let (address, properties) = (crate::free_address(), folder.join("kafka.properties"));
        let settings = std::fs::read_to_string(first.join("kafka.properties")).unwrap();
        let settings: Vec<String> =
            settings.lines().map(|line| of_second(line, &address, &folder.join("kafka"))).collect();
        std::fs::write(&properties, settings.join("\n")).unwrap();
        let meta = std::fs::read_to_string(first.join("kafka/meta.properties")).unwrap();
        let cluster = meta.lines().find_map(|line| line.strip_prefix("cluster.id=")).expect("a cluster's id");
        // As the first was started, but for what it runs.
        let started = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap();
        let started = String::from_utf8(started).unwrap();
        let java: Vec<&str> = started.split('\0').take_while(|word| *word != "kafka.Kafka").collect();
        let run = |arguments: &[&str]| {
            let mut command = Command::new(java[0]);
            command
                .args(&java[1..])
                .args(arguments)
                .arg(&properties)
                .stdout(Stdio::null())
                .kill_on_drop(true);
            command
        };
        let formatted = run(&["kafka.tools.StorageTool", "format", "-t", cluster, "-c"]).status().await;
        assert!(formatted.unwrap().success(), "its storage is not formatted");
        let second = Second(run(&["kafka.Kafka"]).spawn().unwrap());
        let options = KafkaOptions { brokers: address, ..self.options() };
        crate::until("the second broker", async || {
            messaging::admin::topics(&options, std::time::Duration::from_secs(1)).await.ok().map(drop)
        })
        .await;
        second
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid, signal).expect("the broker runs");
    }
}

/// A setting of the first broker, for the second.
fn of_second(line: &str, address: &str, data: &Path) -> String {
    match line.split('=').next().unwrap_or_default() {
        "process.roles" => "process.roles=broker".to_owned(),
        "node.id" => "node.id=2".to_owned(),
        "listeners" => format!("listeners=PLAINTEXT://{address}"),
        "advertised.listeners" => format!("advertised.listeners=PLAINTEXT://{address}"),
        "log.dirs" => format!("log.dirs={}", data.display()),
        _ => line.to_owned(),
    }
}

/// A second broker; killed when dropped, and to be dropped before the first.
pub struct Second(Child);

impl Second {
    /// Stops it in the middle of whatever it does: after some seconds the cluster goes on without it.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.0.id().expect("the second broker runs");
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _gone = kill(self.pid, Signal::SIGKILL);
        let _gone = std::fs::remove_dir_all(root().join(".brew").join(&self.profile));
    }
}

async fn up(profile: &str, advertised: Option<&str>) -> (Pid, String) {
    // Tests are in target/<profile>/deps, whatever the target folder is.
    let test = std::env::current_exe().unwrap();
    let binaries = test.parent().and_then(std::path::Path::parent).expect("a test of cargo's");
    let mut command = Command::new(binaries.join("brew"));
    command
        .args(["local", "up", "--fast", "--profile", profile])
        .current_dir(root())
        .env("DATABASE_URL", crate::variable("BREW_TEST_POSTGRES"))
        .env("BREW_KAFKA", "jars");
    if let Some(advertised) = advertised {
        command.env("BREW_KAFKA_ADVERTISED", advertised);
    }
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let state = std::fs::read(root().join(".brew").join(profile).join("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let kafka = &state["kafka"];
    let pid = kafka["how"]["Process"]["pid"].as_i64().expect("a process of ours");
    let address = kafka["brokers"].as_str().expect("an address").to_owned();
    (Pid::from_raw(i32::try_from(pid).unwrap()), address)
}

/// The workspace's folder.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
