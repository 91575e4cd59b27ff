//! Postgres and Kafka on this machine, each with Docker or without. Ports are free ones of the loopback, the
//! state is in one folder, processes are ended by their id, and every choice is said.

mod broker;
mod compose;
mod jaeger;
mod jars;
mod kafka;
mod postgres;
mod process;
mod state;

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context, bail};
use clap::Subcommand;

use crate::output::{line, note};

pub(crate) use state::{Profile, State};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start Postgres and Kafka, and say what was used and why.
    ///
    /// Postgres: DATABASE_URL if set, else Docker, else the system's binaries.
    ///
    /// Kafka: KAFKA_BROKERS if set, else Docker, else Apache Kafka's jars (Java 17 and Maven), else an embedded
    /// broker.
    ///
    /// Jaeger (--jaeger): JAEGER_URL with OTEL_EXPORTER_OTLP_ENDPOINT if set, else Docker.
    ///
    /// BREW_POSTGRES=compose|system and BREW_KAFKA=compose|jars|embedded choose by hand. Behind a proxy,
    /// BREW_KAFKA_ADVERTISED=host:port is where a broker from jars sends its clients.
    Up(Profile),
    /// Stop them; their data stays.
    Down(Profile),
    /// Stop them and delete their data.
    Reset(Profile),
    /// Say what runs where.
    Status(Profile),
    /// Start them, run a command with BREW_TEST_POSTGRES and BREW_TEST_KAFKA set, then delete everything.
    ///
    /// With --jaeger, BREW_TEST_JAEGER and BREW_TEST_OTLP say where one is; tests that want one are not run without.
    Run {
        #[command(flatten)]
        profile: Profile,
        /// The command and its arguments, after `--`.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Serve as the embedded broker until ended; prints its address.
    #[command(hide = true)]
    Broker(broker::Args),
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(profile) => {
            up(&profile).await?;
        }
        Command::Down(profile) => down(&profile).await?,
        Command::Reset(profile) => reset(&profile).await?,
        Command::Status(profile) => status(&profile)?,
        Command::Run { profile, command } => return run_inside(&profile, command).await,
        Command::Broker(args) => broker::serve(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts what does not run yet.
pub(crate) async fn up(profile: &Profile) -> anyhow::Result<State> {
    let docker = compose::usable().await;
    let mut state = servers(profile, &docker).await?;
    if profile.jaeger {
        state.jaeger = Some(jaeger::start(profile, &docker).await?);
        state.save(profile)?;
    }
    state.describe().into_iter().for_each(note);
    Ok(state)
}

/// Postgres and Kafka.
async fn servers(profile: &Profile, docker: &Result<(), String>) -> anyhow::Result<State> {
    let mut state = State::load(profile)?.unwrap_or_default();
    if !state.postgres_runs() {
        state.postgres = Some(postgres::start(profile, docker).await?);
        state.save(profile)?;
    }
    if !state.kafka_runs() {
        state.kafka = Some(kafka::start(profile, docker).await?);
        state.save(profile)?;
    }
    Ok(state)
}

/// Stops what `up` started.
pub(crate) async fn down(profile: &Profile) -> anyhow::Result<()> {
    let Some(state) = State::load(profile)? else {
        note("nothing runs");
        return Ok(());
    };
    stop(profile, &state).await?;
    note("stopped; the data stays (`make reset` deletes it)");
    Ok(())
}

async fn stop(profile: &Profile, state: &State) -> anyhow::Result<()> {
    if let Some(jaeger) = &state.jaeger {
        jaeger::stop(profile, jaeger).await?;
    }
    if let Some(kafka) = &state.kafka {
        kafka::stop(profile, kafka).await?;
    }
    if let Some(postgres) = &state.postgres {
        postgres::stop(profile, postgres).await?;
    }
    Ok(())
}

/// Stops what `up` started and deletes its data; of servers that were given, what a lab has there.
pub(crate) async fn reset(profile: &Profile) -> anyhow::Result<()> {
    if let Some(state) = State::load(profile)? {
        if let Some(kafka) = &state.kafka {
            kafka::clear(kafka).await?;
        }
        if let Some(postgres) = &state.postgres {
            postgres::clear(postgres).await?;
        }
    }
    discard(profile).await
}

/// Stops what `up` started and deletes its data. Servers that were given stay as they are.
pub(crate) async fn discard(profile: &Profile) -> anyhow::Result<()> {
    if let Some(state) = State::load(profile)? {
        stop(profile, &state).await?;
        if let Some(postgres) = &state.postgres {
            postgres::delete(postgres)?;
        }
        compose::delete(profile, &state).await?;
    }
    let folder = profile.folder();
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("delete {}", folder.display()))?;
    }
    Ok(())
}

fn status(profile: &Profile) -> anyhow::Result<()> {
    match State::load(profile)? {
        Some(state) => state.describe().into_iter().for_each(line),
        None => bail!("nothing runs; `make up` starts Postgres and Kafka"),
    }
    Ok(())
}

async fn run_inside(profile: &Profile, command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no command given")?;
    let end = async {
        let docker = compose::usable().await;
        let mut state = servers(profile, &docker).await?;
        if profile.jaeger {
            match jaeger::start(profile, &docker).await {
                Ok(jaeger) => state.jaeger = Some(jaeger),
                Err(why) => note(format_args!("not run: trace in Jaeger ({why:#})")),
            }
            state.save(profile)?;
        }
        state.describe().into_iter().for_each(note);
        let traced = state.jaeger.iter().flat_map(|jaeger| {
            [("BREW_TEST_JAEGER", jaeger.url.clone()), ("BREW_TEST_OTLP", jaeger.otlp.clone())]
        });
        tokio::process::Command::new(program)
            .args(arguments)
            // Only what a test asks for is traced.
            .env_remove(state::OTLP)
            .envs(traced)
            .env("BREW_TEST_POSTGRES", state.postgres_url()?)
            .env("BREW_TEST_KAFKA", state.brokers()?)
            .status()
            .await
            .with_context(|| format!("run {}", program.to_string_lossy()))
    }
    .await;
    reset(profile).await?;
    let code = end?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
