//! Asking a service's own admin port from within its container, which has no shell.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use crate::Error;

/// For an answer; Docker and Kubernetes wait longer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Asks the admin port of the same service on this machine whether it is ready.
///
/// # Errors
/// Nobody answers within 2 s, or the service is not ready; says what it waits for.
pub async fn healthcheck(admin: SocketAddr) -> Result<(), Error> {
    let place = reachable(admin);
    let no_answer = |source| Error::NoAnswer { place, source };
    let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build().map_err(no_answer)?;
    let answer = client.get(format!("http://{place}/readyz")).send().await.map_err(no_answer)?;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(Error::NotReady(answer.text().await.map_err(no_answer)?.trim_end().replace('\n', "; ")))
}

/// Where one asks who listens at `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Health, health::serve_admin_on};

    #[tokio::test]
    async fn it_says_what_a_service_waits_for_and_when_nobody_answers() {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let admin = listener.local_addr().unwrap();
        let (health, shutdown) = (Health::default(), CancellationToken::new());
        health.not_ready("database", "away");
        let serving = tokio::spawn(serve_admin_on(listener, health.clone(), shutdown.clone()));
        assert_eq!(healthcheck(admin).await.unwrap_err().to_string(), "not ready: database: away");
        health.ready("database");
        healthcheck(admin).await.unwrap();
        shutdown.cancel();
        serving.await.unwrap().unwrap();
        let error = healthcheck(admin).await.unwrap_err().to_string();
        assert_eq!(error, format!("no answer at 127.0.0.1:{}", admin.port()));
    }
}
