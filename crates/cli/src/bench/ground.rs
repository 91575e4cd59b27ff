//! Where a bench is run: Postgres and Kafka of its own or given ones, on which it touches nothing but what it has made.

use std::time::Duration;

use anyhow::Context;
use messaging::{
    KafkaOptions,
    admin::{self, TopicSpec},
};
use procfs::{CpuInfo, Current};
use serde::Serialize;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::{
    lab::{self, database_url},
    local::{self, Profile, State},
};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Read at once when a topic is judged; ten million records take minutes.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(1800);

const RETENTION_MS: i64 = 24 * 3600 * 1000;

/// The parts of a bench, each with a database and a topic of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Drain,
    FetchAndMark,
    Produce,
    Unmeasured,
    Notified,
    Unnotified,
    Consumer,
    PlaceOrder,
    Backlog,
    Untraced,
    Traced,
    TracedTenth,
}

const PARTS: [Part; 12] = [
    Part::Drain,
    Part::FetchAndMark,
    Part::Produce,
    Part::Unmeasured,
    Part::Notified,
    Part::Unnotified,
    Part::Consumer,
    Part::PlaceOrder,
    Part::Backlog,
    Part::Untraced,
    Part::Traced,
    Part::TracedTenth,
];

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::FetchAndMark => "fetch_and_mark",
            Self::Produce => "produce",
            Self::Unmeasured => "unmeasured",
            Self::Notified => "notified",
            Self::Unnotified => "unnotified",
            Self::Consumer => "consumer",
            Self::PlaceOrder => "place_order",
            Self::Backlog => "backlog",
            Self::Untraced => "untraced",
            Self::Traced => "traced",
            Self::TracedTenth => "traced_tenth",
        }
    }
}

/// On what it was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    /// Cores, kind of processor.
    machine: String,
    /// `release`, or `debug`, whose figures say nothing.
    build: &'static str,
    /// Postgres and Kafka, and how they came to be there.
    servers: Vec<String>,
    /// Postgres' settings that matter.
    postgres: Vec<(String, String)>,
}

impl Setting {
    pub(crate) fn lines(&self) -> Vec<String> {
        let settings: Vec<String> =
            self.postgres.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let mut lines = vec![format!("machine   {}, {} build", self.machine, self.build)];
        lines.extend(self.servers.iter().cloned());
        lines.push(format!("settings  {}", settings.join(", ")));
        lines
    }
}

/// Where a bench is run.
pub(crate) struct Ground {
    profile: Profile,
    state: State,
    /// Tells this run's databases and topics from any other's.
    run: String,
}

impl Ground {
    /// Brings up what is not given.
    pub(crate) async fn up() -> anyhow::Result<Self> {
        let profile = Profile { measured: true, ..Profile::named("bench") };
        // A bench that was interrupted may have left something.
        local::discard(&profile).await?;
        let state = local::up(&profile).await?;
        let mut run = Uuid::new_v4().simple().to_string();
        run.truncate(8);
        Ok(Self { profile, state, run })
    }

    /// Ends what was brought up; on given servers, deletes what this run has made.
    pub(crate) async fn clear(self) -> anyhow::Result<()> {
        if self.postgres_pid().is_err() {
            let admin = lab::connect(self.state.postgres_url()?).await?;
            for part in PARTS {
                admin
                    .batch_execute(&format!("drop database if exists {} with (force)", self.name(part, '_')))
                    .await?;
            }
        }
        if self.kafka_pid().is_err() {
            let topics = PARTS.map(|part| self.name(part, '.'));
            admin::delete(&self.kafka()?, &topics.each_ref().map(String::as_str), TIMEOUT).await?;
        }
        local::discard(&self.profile).await
    }

    fn name(&self, part: Part, separator: char) -> String {
        format!("bench{separator}{}{separator}{}", self.run, part.name())
    }

    pub(crate) fn kafka(&self) -> anyhow::Result<KafkaOptions> {
        Ok(lab::kafka_options(self.state.brokers()?))
    }

    pub(crate) fn postgres_pid(&self) -> Result<i32, &'static str> {
        self.state.postgres_pid()
    }

    pub(crate) fn kafka_pid(&self) -> Result<i32, &'static str> {
        self.state.kafka_pid()
    }

    pub(crate) fn url(&self, part: Part) -> anyhow::Result<String> {
        database_url(self.state.postgres_url()?, &self.name(part, '_'))
    }

    pub(crate) async fn connect(&self, part: Part) -> anyhow::Result<Client> {
        lab::connect(&self.url(part)?).await
    }

    /// Makes a part's database, empty, and connects to it.
    pub(crate) async fn database(&self, part: Part) -> anyhow::Result<Client> {
        let admin = lab::connect(self.state.postgres_url()?).await?;
        admin.batch_execute(&format!("create database {}", self.name(part, '_'))).await?;
        let client = self.connect(part).await?;
        // Not everywhere to be had; then the log's page images are not told apart.
        let _extra = client.batch_execute("create extension if not exists pg_walinspect").await;
        Ok(client)
    }

    /// Makes a part's topic and returns its name.
    pub(crate) async fn topic(&self, part: Part) -> anyhow::Result<String> {
        let (kafka, name) = (self.kafka()?, self.name(part, '.'));
        let spec = TopicSpec {
            name: name.clone(),
            partitions: kafka.partitions,
            replication: 1,
            min_in_sync: 1,
            retention_ms: RETENTION_MS,
            extra_bytes: 0,
            compacted: false,
        };
        admin::create(&kafka, &[spec], TIMEOUT)
            .await
            .context("make a topic; the embedded broker cannot, a bench takes Apache Kafka")?;
        Ok(name)
    }

    pub(crate) async fn setting(&self) -> anyhow::Result<Setting> {
        let client = lab::connect(self.state.postgres_url()?).await?;
        let sql = "
            select name, current_setting(name) from pg_settings
             where name in ('server_version', 'shared_buffers', 'max_wal_size', 'wal_level', 'wal_compression',
                            'full_page_writes', 'fsync', 'synchronous_commit')
             order by name";
        let rows = client.query(sql, &[]).await?;
        let processor = CpuInfo::current()?.model_name(0).unwrap_or("of a kind that is not said").to_owned();
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        Ok(Setting {
            machine: format!("{cores} cores, {processor}"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            servers: self.state.describe(),
            postgres: rows.iter().map(|row| (row.get(0), row.get(1))).collect(),
        })
    }
}
