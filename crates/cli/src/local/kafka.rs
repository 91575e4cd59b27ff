//! Kafka: given, in Docker, from Apache Kafka's jars, or embedded.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::{lab, output::note};

use super::{
    broker, compose, jars,
    process::{Process, free_port},
    state::{Kafka, KafkaKind, Profile},
};

/// Which kinds there are, best first.
const KINDS: [&str; 3] = ["compose", "jars", "embedded"];

/// A cluster id as `kafka-storage.sh random-uuid` makes them. One cluster is as good as another here.
const CLUSTER_ID: &str = "QnJld0xvY2FsS2Fma2EwMQ";

/// For a JVM that is there soon, and one that is cheap once it is warm (what Kafka's own scripts set).
const QUICK: &[&str] = &["-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const MEASURED: &[&str] = &["-Xms1G", "-Xmx1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"];

pub(crate) async fn start(profile: &Profile, docker: &Result<(), String>) -> anyhow::Result<Kafka> {
    if let Ok(brokers) = std::env::var("KAFKA_BROKERS") {
        lab::topics(&brokers).await.context("KAFKA_BROKERS is set, but no broker answers there")?;
        let what = "given by KAFKA_BROKERS".to_owned();
        return Ok(Kafka { brokers, what, how: KafkaKind::Given });
    }
    let by_hand = std::env::var("BREW_KAFKA").ok();
    if let Some(kind) = &by_hand
        && !KINDS.contains(&kind.as_str())
    {
        bail!("BREW_KAFKA must be one of {}, not `{kind}`", KINDS.join(", "));
    }
    let mut reasons = Vec::new();
    for kind in KINDS.iter().filter(|kind| by_hand.as_deref().is_none_or(|wanted| wanted == **kind)) {
        let attempt = match (*kind, docker) {
            ("compose", Ok(())) => in_docker(profile).await,
            ("compose", Err(why)) => Err(anyhow::anyhow!("{why}")),
            ("jars", _) => from_jars(profile).await,
            _ => embedded(profile).await,
        };
        match attempt {
            Ok(mut kafka) => {
                let why = if by_hand.is_some() { "BREW_KAFKA".to_owned() } else { reasons.join("; ") };
                if !why.is_empty() {
                    kafka.what += &format!(" ({why})");
                }
                return Ok(kafka);
            }
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    bail!("no Kafka: {}", reasons.join("; "))
}

pub(crate) async fn stop(profile: &Profile, kafka: &Kafka) -> anyhow::Result<()> {
    match &kafka.how {
        KafkaKind::Given => Ok(()),
        KafkaKind::Compose => compose::stop(profile, "kafka").await,
        KafkaKind::Process(process) => process.stop(Signal::SIGTERM).await,
    }
}

/// On a broker that is not ours, what is ours is deleted.
pub(crate) async fn clear(kafka: &Kafka) -> anyhow::Result<()> {
    match &kafka.how {
        KafkaKind::Given => lab::delete_topics(&kafka.brokers).await,
        KafkaKind::Compose | KafkaKind::Process(_) => Ok(()),
    }
}

async fn in_docker(profile: &Profile) -> anyhow::Result<Kafka> {
    note("kafka: docker compose up ...");
    let [port] = compose::up(profile, "kafka", [("9094", "BREW_KAFKA_PORT")]).await?;
    let brokers = format!("127.0.0.1:{port}");
    Ok(Kafka { brokers, what: "Apache Kafka in Docker".to_owned(), how: KafkaKind::Compose })
}

async fn from_jars(profile: &Profile) -> anyhow::Result<Kafka> {
    let jars = jars::get().await?;
    let folder = profile.folder();
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let properties = folder.join("kafka.properties");
    let (port, controller) = match former_ports(&properties) {
        Some(ports) => ports,
        None => (free_port()?, free_port()?),
    };
    let advertised = std::env::var("BREW_KAFKA_ADVERTISED").unwrap_or_else(|_| format!("127.0.0.1:{port}"));
    std::fs::write(&properties, server_properties(port, controller, &advertised, &folder.join("kafka")))?;
    std::fs::write(folder.join("kafka-log4j2.yaml"), LOG4J)?;
    if !folder.join("kafka/meta.properties").exists() {
        format_storage(&jars, &folder, &properties)?;
    }
    let log = folder.join("kafka.log");
    let flags = if profile.measured { MEASURED } else { QUICK };
    note("kafka: starting Apache Kafka ...");
    let process = Process::start(java(&jars, &folder, flags).arg("kafka.Kafka").arg(&properties), &log)?;
    let brokers = format!("127.0.0.1:{port}");
    wait(&brokers, &process, &log).await?;
    let what = format!("Apache Kafka {} (KRaft) from its jars", jars::VERSION);
    Ok(Kafka { brokers, what, how: KafkaKind::Process(process) })
}

async fn embedded(profile: &Profile) -> anyhow::Result<Kafka> {
    let folder = profile.folder();
    std::fs::create_dir_all(&folder)?;
    let log = folder.join("embedded-broker.log");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["local", "broker"]);
    let process = Process::start(&mut command, &log)?;
    let brokers = broker::announced(&log, &process).await?;
    wait(&brokers, &process, &log).await?;
    let what = "EMBEDDED broker, not Apache Kafka: in memory, proves nothing about durability".to_owned();
    Ok(Kafka { brokers, what, how: KafkaKind::Process(process) })
}

fn format_storage(jars: &Path, folder: &Path, properties: &Path) -> anyhow::Result<()> {
    let output = java(jars, folder, QUICK)
        .args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"])
        .arg(properties)
        .stdin(Stdio::null())
        .output()
        .context("run java")?;
    if !output.status.success() {
        bail!("formatting Kafka's storage: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn java(jars: &Path, folder: &Path, flags: &[&str]) -> Command {
    let mut logging = std::ffi::OsString::from("-Dlog4j2.configurationFile=");
    logging.push(folder.join("kafka-log4j2.yaml"));
    let mut command = Command::new("java");
    command.args(flags).arg("-Djava.awt.headless=true");
    command.arg(logging).arg("-cp").arg(jars.join("*"));
    command
}

async fn wait(brokers: &str, process: &Process, log: &Path) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = lab::topics(brokers).await {
        if !process.alive() || tokio::time::Instant::now() > deadline {
            return Err(error).with_context(|| format!("the broker did not start, see {}", log.display()));
        }
    }
    Ok(())
}

/// The broker's and the controller's port of the last time, if they are free: whoever knows the broker finds it again.
fn former_ports(properties: &Path) -> Option<(u16, u16)> {
    let text = std::fs::read_to_string(properties).ok()?;
    let listeners = text.lines().find_map(|line| line.strip_prefix("listeners="))?;
    let mut ports = listeners.split(',').map(|listener| listener.rsplit(':').next()?.parse().ok());
    let (port, controller): (u16, u16) = (ports.next()??, ports.next()??);
    let free = |port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    (free(port) && free(controller)).then_some((port, controller))
}

fn server_properties(port: u16, controller: u16, advertised: &str, data: &Path) -> String {
    format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{advertised}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=5
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
",
        data.display()
    )
}

const LOG4J: &str = "Configuration:
  Appenders:
    Console:
      name: STDOUT
      PatternLayout:
        pattern: \"[%d] %p %m (%c)%n\"
  Loggers:
    Root:
      level: WARN
      AppenderRef:
        - ref: STDOUT
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_starts_again_is_where_it_was() {
        let file = std::env::temp_dir().join(format!("brew-ports-{}", std::process::id()));
        assert_eq!(former_ports(&file), None);
        let (port, controller) = (free_port().unwrap(), free_port().unwrap());
        std::fs::write(&file, server_properties(port, controller, "elsewhere:1", Path::new("/data")))
            .unwrap();
        assert_eq!(former_ports(&file), Some((port, controller)));
        let taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert_eq!(former_ports(&file), None);
        drop(taken);
        std::fs::remove_file(&file).unwrap();
    }
}
