//! What runs, remembered between two commands.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::process::Process;

/// Which set of Postgres and Kafka: sets run side by side and know nothing of each other.
#[derive(Args, Clone)]
pub(crate) struct Profile {
    /// Name of the set.
    #[arg(long, default_value = "lab")]
    pub(crate) profile: String,
    /// Give up durability for speed; for tests.
    #[arg(long)]
    pub(crate) fast: bool,
    /// Jaeger, too: the one that JAEGER_URL and OTEL_EXPORTER_OTLP_ENDPOINT name, else one in Docker.
    #[arg(long)]
    pub(crate) jaeger: bool,
    /// For measuring: with more memory, code compiled as far as it goes, and no checkpoint in between.
    #[arg(skip)]
    pub(crate) measured: bool,
}

impl Profile {
    pub(crate) fn named(name: &str) -> Self {
        Self { profile: name.to_owned(), fast: false, jaeger: false, measured: false }
    }

    /// The one folder with this set's state.
    pub(crate) fn folder(&self) -> PathBuf {
        root().join(&self.profile)
    }
}

/// The environment's name for where spans go.
pub(super) const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

const GIVEN: &str = "not ours";
const IN_DOCKER: &str = "in Docker";

/// The folder with all local state, beside the workspace's manifest.
pub(crate) fn root() -> PathBuf {
    std::env::var_os("BREW_STATE").map_or_else(|| PathBuf::from(".brew"), PathBuf::from)
}

/// What was started, or given, and how.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) postgres: Option<Postgres>,
    pub(crate) kafka: Option<Kafka>,
    #[serde(default)]
    pub(crate) jaeger: Option<Jaeger>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Postgres {
    pub(crate) url: String,
    /// For a person: what it is, and why.
    pub(crate) what: String,
    pub(crate) how: PostgresKind,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum PostgresKind {
    Given,
    Compose,
    System { data: PathBuf, bin: PathBuf, server: Process },
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Kafka {
    pub(crate) brokers: String,
    pub(crate) what: String,
    pub(crate) how: KafkaKind,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum KafkaKind {
    Given,
    Compose,
    Process(Process),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Jaeger {
    /// Of its web page and query API.
    pub(crate) url: String,
    /// Where it takes spans, by OTLP over gRPC.
    pub(crate) otlp: String,
    pub(crate) what: String,
    pub(crate) how: JaegerKind,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum JaegerKind {
    Given,
    Compose,
}

impl Jaeger {
    /// The environment of who sends spans and of who looks for them.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        [(OTLP, self.otlp.clone()), ("JAEGER_URL", self.url.clone())]
    }
}

impl State {
    pub(crate) fn load(profile: &Profile) -> anyhow::Result<Option<Self>> {
        let file = profile.folder().join("state.json");
        if !file.exists() {
            return Ok(None);
        }
        let text = std::fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        let state = serde_json::from_slice(&text).with_context(|| format!("read {}", file.display()))?;
        Ok(Some(state))
    }

    /// What runs, for verbs that need it.
    pub(crate) fn running(profile: &Profile) -> anyhow::Result<Self> {
        Self::found(profile)?.context(
            "Postgres and Kafka do not run; `make up` starts them, or DATABASE_URL and KAFKA_BROKERS name them",
        )
    }

    /// What runs here, else what the environment names: of a stack in containers.
    pub(crate) fn found(profile: &Profile) -> anyhow::Result<Option<Self>> {
        Ok(Self::load(profile)?.or_else(Self::given))
    }

    fn given() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let what = |name| format!("given by {name}");
        let (url, brokers) = (variable("DATABASE_URL")?, variable("KAFKA_BROKERS")?);
        Some(Self {
            postgres: Some(Postgres { url, what: what("DATABASE_URL"), how: PostgresKind::Given }),
            kafka: Some(Kafka { brokers, what: what("KAFKA_BROKERS"), how: KafkaKind::Given }),
            jaeger: None,
        })
    }

    pub(crate) fn save(&self, profile: &Profile) -> anyhow::Result<()> {
        let folder = profile.folder();
        std::fs::create_dir_all(&folder)?;
        // Renamed into place, so that a crash leaves the old state or the new one.
        let (new, file) = (folder.join("state.json.new"), folder.join("state.json"));
        std::fs::write(&new, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&new, &file).with_context(|| format!("write {}", file.display()))
    }

    pub(crate) fn postgres_url(&self) -> anyhow::Result<&str> {
        Ok(&self.postgres.as_ref().context("Postgres does not run; `make up` starts it")?.url)
    }

    pub(crate) fn brokers(&self) -> anyhow::Result<&str> {
        Ok(&self.kafka.as_ref().context("Kafka does not run; `make up` starts it")?.brokers)
    }

    pub(crate) fn jaeger(&self) -> anyhow::Result<&Jaeger> {
        self.jaeger.as_ref().context("Jaeger does not run; `brew local up --jaeger` starts it")
    }

    /// Whether anything is in Docker.
    pub(crate) fn in_docker(&self) -> bool {
        self.postgres.as_ref().is_some_and(|postgres| matches!(postgres.how, PostgresKind::Compose))
            || self.kafka.as_ref().is_some_and(|kafka| matches!(kafka.how, KafkaKind::Compose))
            || self.jaeger.as_ref().is_some_and(|jaeger| matches!(jaeger.how, JaegerKind::Compose))
    }

    pub(crate) fn postgres_runs(&self) -> bool {
        self.postgres.as_ref().is_some_and(|postgres| match &postgres.how {
            PostgresKind::System { server, .. } => server.alive(),
            // What others look after is looked at again each time.
            PostgresKind::Given | PostgresKind::Compose => false,
        })
    }

    pub(crate) fn kafka_runs(&self) -> bool {
        self.kafka.as_ref().is_some_and(|kafka| match &kafka.how {
            KafkaKind::Process(process) => process.alive(),
            KafkaKind::Given | KafkaKind::Compose => false,
        })
    }

    /// The id of Postgres' first process; why it is not known, if it is not.
    pub(crate) fn postgres_pid(&self) -> Result<i32, &'static str> {
        match self.postgres.as_ref().map(|postgres| &postgres.how) {
            Some(PostgresKind::System { server, .. }) => Ok(server.pid),
            Some(PostgresKind::Compose) => Err(IN_DOCKER),
            Some(PostgresKind::Given) => Err(GIVEN),
            None => Err("not there"),
        }
    }

    /// The id of Kafka's process; why it is not known, if it is not.
    pub(crate) fn kafka_pid(&self) -> Result<i32, &'static str> {
        match self.kafka.as_ref().map(|kafka| &kafka.how) {
            Some(KafkaKind::Process(process)) => Ok(process.pid),
            Some(KafkaKind::Compose) => Err(IN_DOCKER),
            Some(KafkaKind::Given) => Err(GIVEN),
            None => Err("not there"),
        }
    }

    pub(crate) fn describe(&self) -> Vec<String> {
        let postgres = self.postgres.as_ref().map(|postgres| {
            let alive = match &postgres.how {
                PostgresKind::System { server, .. } => server.alive(),
                PostgresKind::Given | PostgresKind::Compose => true,
            };
            describe("postgres", without_password(&postgres.url), &postgres.what, alive)
        });
        let kafka = self.kafka.as_ref().map(|kafka| {
            let alive = match &kafka.how {
                KafkaKind::Process(process) => process.alive(),
                KafkaKind::Given | KafkaKind::Compose => true,
            };
            describe("kafka", kafka.brokers.clone(), &kafka.what, alive)
        });
        let jaeger =
            self.jaeger.as_ref().map(|jaeger| describe("jaeger", jaeger.url.clone(), &jaeger.what, true));
        postgres.into_iter().chain(kafka).chain(jaeger).collect()
    }
}

fn describe(part: &str, place: String, what: &str, alive: bool) -> String {
    let stopped = if alive { "" } else { " [stopped]" };
    format!("{part:<9} {place:<40} {what}{stopped}")
}

fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}{}", &url[..scheme + 3], &url[at + 1..]),
        _ => url.to_owned(),
    }
}
