//! Postgres: given, in Docker, or from the system's binaries.

use std::{
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, bail};
use nix::{
    sys::signal::Signal,
    unistd::{Uid, User},
};

use crate::output::note;

use super::{
    compose,
    process::{Process, free_port},
    state::{Postgres, PostgresKind, Profile, State},
};

const USER: &str = "brew";

pub(crate) async fn start(profile: &Profile, docker: &Result<(), String>) -> anyhow::Result<Postgres> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        connect(&url).await.context("DATABASE_URL is set, but Postgres does not answer there")?;
        let what = "given by DATABASE_URL".to_owned();
        return Ok(Postgres { url, what, how: PostgresKind::Given });
    }
    let by_hand = std::env::var("BREW_POSTGRES").ok();
    let why_not = match (by_hand.as_deref(), docker) {
        (Some("system"), _) => "BREW_POSTGRES=system".to_owned(),
        (None, Err(why)) => why.clone(),
        (None | Some("compose"), Ok(())) => match in_docker(profile).await {
            Ok(postgres) => return Ok(postgres),
            Err(error) if by_hand.is_none() => {
                note("postgres: trying the system's binaries");
                format!("{error:#}")
            }
            Err(error) => return Err(error),
        },
        (Some("compose"), Err(why)) => bail!("BREW_POSTGRES=compose, but {why}"),
        (Some(other), _) => bail!("BREW_POSTGRES must be `compose` or `system`, not `{other}`"),
    };
    from_system(profile, &why_not).await
}

pub(crate) async fn stop(profile: &Profile, postgres: &Postgres) -> anyhow::Result<()> {
    match &postgres.how {
        PostgresKind::Given => Ok(()),
        PostgresKind::Compose => compose::stop(profile, "postgres").await,
        // SIGINT is Postgres' fast shutdown: it ends the sessions and checkpoints.
        PostgresKind::System { server, .. } => server.stop(Signal::SIGINT).await,
    }
}

/// On a server that is not ours, what is ours is dropped.
pub(crate) async fn clear(postgres: &Postgres) -> anyhow::Result<()> {
    match &postgres.how {
        PostgresKind::Given => crate::lab::drop_databases(&postgres.url).await,
        PostgresKind::System { .. } | PostgresKind::Compose => Ok(()),
    }
}

/// Deletes data that lies outside of the profile's folder.
pub(crate) fn delete(postgres: &Postgres) -> anyhow::Result<()> {
    match &postgres.how {
        PostgresKind::System { data, .. } if data.exists() => {
            std::fs::remove_dir_all(data).with_context(|| format!("delete {}", data.display()))
        }
        PostgresKind::System { .. } | PostgresKind::Compose | PostgresKind::Given => Ok(()),
    }
}

async fn in_docker(profile: &Profile) -> anyhow::Result<Postgres> {
    note("postgres: docker compose up ...");
    let [port] = compose::up(profile, "postgres", [("5432", "BREW_POSTGRES_PORT")]).await?;
    let url = format!("postgres://{USER}:{USER}@127.0.0.1:{port}/postgres");
    Ok(Postgres { url, what: "PostgreSQL in Docker".to_owned(), how: PostgresKind::Compose })
}

async fn from_system(profile: &Profile, why_not_docker: &str) -> anyhow::Result<Postgres> {
    let bin = find_binaries().with_context(|| {
        format!(
            "no PostgreSQL on this machine ({why_not_docker}): install its server package, or start Docker"
        )
    })?;
    let data = data_folder(profile)?;
    let user = server_user()?;
    if !data.join("PG_VERSION").exists() {
        note(format_args!("postgres: initdb in {} ...", data.display()));
        make_cluster(&bin, &data, user.as_ref())?;
    }
    let port = free_port()?;
    let url = format!("postgres://{USER}:{USER}@127.0.0.1:{port}/postgres");
    let mut command = as_user(&bin.join("postgres"), user.as_ref());
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]).args(["-c", "listen_addresses=127.0.0.1"]);
    command.args(["-c", "unix_socket_directories=", "-c", "max_connections=300"]);
    command.args(["-c", "wal_level=logical"]);
    if profile.fast {
        command.args(["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"]);
    }
    if profile.measured {
        command.args([
            "-c",
            "shared_buffers=1GB",
            "-c",
            "max_wal_size=8GB",
            "-c",
            "checkpoint_timeout=30min",
        ]);
    }
    let log = profile.folder().join("postgres.log");
    let server = Process::start(&mut command, &log)?;
    wait(&url, &server, &log).await?;
    let version = std::fs::read_to_string(data.join("PG_VERSION")).unwrap_or_default();
    let what = format!("PostgreSQL {} from {} ({why_not_docker})", version.trim(), bin.display());
    Ok(Postgres { url, what, how: PostgresKind::System { data, bin, server } })
}

fn make_cluster(bin: &Path, data: &Path, user: Option<&User>) -> anyhow::Result<()> {
    let password = data.with_extension("password");
    std::fs::write(&password, USER)?;
    std::fs::create_dir_all(data)?;
    if let Some(user) = user {
        for path in [data, &password] {
            chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
                .with_context(|| format!("give {} to {}", path.display(), user.name))?;
        }
    }
    let mut pwfile = std::ffi::OsString::from("--pwfile=");
    pwfile.push(&password);
    let output = as_user(&bin.join("initdb"), user)
        .arg("-D")
        .arg(data)
        .args(["-U", USER, "-A", "scram-sha-256", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync"])
        .arg(pwfile)
        .output()
        .context("run initdb")?;
    std::fs::remove_file(&password)?;
    if !output.status.success() {
        std::fs::remove_dir_all(data)?;
        bail!("initdb: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn find_binaries() -> Option<PathBuf> {
    let mut candidates: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    // Newest first; 9 would sort after 15 as a text.
    candidates.sort_by_key(|path| {
        let version = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        std::cmp::Reverse(version.and_then(|version| version.parse::<u32>().ok()).unwrap_or_default())
    });
    candidates.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    candidates.into_iter().find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
}

/// initdb and postgres refuse root: then the system's `postgres` or `nobody` it is.
fn server_user() -> anyhow::Result<Option<User>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = User::from_name(name)? {
            return Ok(Some(user));
        }
    }
    bail!("PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody` to run it as")
}

fn as_user(program: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("TZ", "UTC");
    if let Some(user) = user {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

/// In the profile's folder, unless the server's user cannot get there (a home folder is often closed to others).
fn data_folder(profile: &Profile) -> anyhow::Result<PathBuf> {
    if let Some(State { postgres: Some(Postgres { how: PostgresKind::System { data, .. }, .. }), .. }) =
        State::load(profile)?
    {
        return Ok(data);
    }
    let folder = profile.folder();
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let open = folder
        .ancestors()
        .all(|path| std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0));
    if open || !Uid::effective().is_root() {
        return Ok(folder.join("postgres"));
    }
    let outside = std::env::temp_dir().join(format!("brew-{}-{}", profile.profile, std::process::id()));
    note(format_args!(
        "postgres: its user cannot enter {}, so the data goes to {}",
        folder.display(),
        outside.display()
    ));
    Ok(outside)
}

async fn wait(url: &str, server: &Process, log: &Path) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = connect(url).await {
        if !server.alive() || tokio::time::Instant::now() > deadline {
            return Err(error).with_context(|| format!("PostgreSQL did not start, see {}", log.display()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn connect(url: &str) -> anyhow::Result<()> {
    crate::lab::connect(url).await.map(drop)
}
