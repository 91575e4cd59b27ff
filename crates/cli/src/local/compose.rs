//! With Docker: the project's own compose file.

use std::path::Path;

use anyhow::{Context, bail};

use crate::output::note;

use super::{
    process::{free_port, runs},
    state::{Profile, State},
};

/// Whether Docker can be used here; if not, why.
pub(crate) async fn usable() -> Result<(), String> {
    if !Path::new("docker-compose.yml").exists() {
        return Err("there is no docker-compose.yml in this folder".to_owned());
    }
    if !runs("docker", &["info"]).await {
        return Err("Docker does not run here".to_owned());
    }
    if !runs("docker", &["compose", "version"]).await {
        return Err("Docker has no compose plugin here".to_owned());
    }
    Ok(())
}

/// Starts one service, waits until it is healthy, and returns its ports outside, for each of `ports`: the port inside
/// and the variable that takes the one outside. A port that it has already stays, others are free ones.
pub(crate) async fn up<const N: usize>(
    profile: &Profile,
    service: &str,
    ports: [(&str, &str); N],
) -> anyhow::Result<[u16; N]> {
    let mut outside = [0; N];
    for (port, (inside, _)) in outside.iter_mut().zip(ports) {
        *port = match published(profile, service, inside).await {
            Some(port) => port,
            None => free_port()?,
        };
    }
    let variables = ports.iter().zip(outside).map(|((_, variable), port)| (*variable, port.to_string()));
    let output = docker(profile, &["up", "--detach", "--wait", service])
        .envs(variables)
        .output()
        .await
        .context("run docker compose")?;
    if !output.status.success() {
        note(String::from_utf8_lossy(&output.stderr).trim());
        // What was made of it must not be in the way of what is tried next.
        let _best_effort = docker(profile, &["rm", "--stop", "--force", "--volumes", service]).output().await;
        bail!("docker compose up {service} failed");
    }
    Ok(outside)
}

/// Stops one service; its volume stays.
pub(crate) async fn stop(profile: &Profile, service: &str) -> anyhow::Result<()> {
    let status = docker(profile, &["stop", service]).output().await.context("run docker compose")?;
    if !status.status.success() {
        bail!("docker compose stop {service} failed");
    }
    Ok(())
}

/// Deletes containers and volumes, if there are any.
pub(crate) async fn delete(profile: &Profile, state: &State) -> anyhow::Result<()> {
    if state.in_docker() {
        let output = docker(profile, &["down", "--volumes"]).output().await.context("run docker compose")?;
        if !output.status.success() {
            bail!("docker compose down --volumes failed");
        }
    }
    Ok(())
}

/// The port outside of a service that runs already.
async fn published(profile: &Profile, service: &str, inside: &str) -> Option<u16> {
    let output = docker(profile, &["port", service, inside]).output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim().rsplit(':').next()?.parse().ok().filter(|port| *port != 0)
}

fn docker(profile: &Profile, arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("docker");
    let project = format!("brew-{}", profile.profile);
    command.args(["compose", "--project-name", &project]).args(arguments);
    command
}
