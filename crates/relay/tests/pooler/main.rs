//! Behind a real PgBouncer in transaction mode, where each transaction may run on another of the server's connections.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use relay::{Mode, Source};
use testkit::{TestDatabase, history, relay_options, relay_setup, until};
use tokio_util::sync::CancellationToken;

/// Fewer than replicas, so that these must share them.
const CONNECTIONS: usize = 2;
const REPLICAS: usize = 4;

/// A PgBouncer; killed when dropped.
struct Pooler {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Pooler {
    /// In front of `database`'s server.
    async fn start(database: &TestDatabase) -> Self {
        // postgres://user:password@host:port/name
        let (user, password, place) = parts(&database.url);
        let (host, port) = place.rsplit_once(':').unwrap();
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = std::env::temp_dir().join(format!("brew-pooler-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ini = folder.join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host={host} port={port} user={user} password={password}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {listen}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\n"
        );
        std::fs::write(&ini, settings).unwrap();
        let mut command = Command::new("pgbouncer");
        if nix::unistd::geteuid().is_root() {
            // It refuses to be root.
            command.args(["-u", "nobody"]);
        }
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = command.arg(&ini).stdin(Stdio::null()).stderr(log).spawn().expect("pgbouncer runs");
        let pooler = Self { process, folder, port: listen };
        let place = ("127.0.0.1", listen);
        let there = async || tokio::net::TcpStream::connect(place).await.ok();
        until("PgBouncer", there).await;
        pooler
    }

    /// `database` through it.
    fn url(&self, database: &TestDatabase) -> String {
        let (user, password, place) = parts(&database.url);
        database
            .url
            .replace(&format!("{user}:{password}@{place}"), &format!("{user}@127.0.0.1:{}", self.port))
    }
}

fn parts(url: &str) -> (&str, &str, &str) {
    let (user, rest) =
        url.strip_prefix("postgres://").unwrap().split_once(':').expect("a user and a password");
    let (password, rest) = rest.split_once('@').unwrap();
    (user, password, rest.split_once('/').unwrap().0)
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn replicas_that_share_the_servers_connections_keep_order_and_repeat_nothing() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    let pooler = Pooler::start(&database).await;
    let shutdown = CancellationToken::new();
    let relays: Vec<_> = (0..REPLICAS)
        .map(|_| {
            let mut setup = relay_setup(&database.url, &kafka, relay_options(), Mode::Forever);
            let url = pooler.url(&database);
            setup.source = Source { url, prepared: false, listen: true, ..setup.source };
            tokio::spawn(relay::run(setup, shutdown.clone()))
        })
        .collect();
    let listening = "select count(*) from pg_stat_activity
                      where datname = current_database() and query = 'listen brew_outbox'";
    until("all to listen", async || (database.number(listening).await == REPLICAS as i64).then_some(()))
        .await;
    let fill = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select 'a-' || n * 7919 % 500, '{topic}', '{{}}' from generate_series(1, 10000) n"
    );
    database.client().await.batch_execute(&fill).await.unwrap();
    let pending = "select count(*) from outbox where published_at is null";
    until("all to be published", async || (database.number(pending).await == 0).then_some(())).await;
    let connections = "select count(*) from pg_stat_activity
                        where datname = current_database() and application_name = 'brew-relay'
                          and query <> 'listen brew_outbox'";
    assert!(database.number(connections).await <= CONNECTIONS as i64, "they did not go through the pooler");
    shutdown.cancel();
    for relay in relays {
        let report = relay.await.unwrap().unwrap();
        assert!(report.published > 0, "a replica had nothing to do");
        assert_eq!(report.failed_turns, 0);
    }
    let history = history(&testkit::read(&topic).await);
    assert_eq!((history.ids.len(), history.repeats), (10_000, 0));
    assert_eq!(history.out_of_order(), [""; 0]);
}
