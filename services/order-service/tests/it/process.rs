//! The binary: its settings, its migrations, its end.

use nix::sys::signal::Signal;
use order_service::migrations;
use testkit::{Service, free_address, run_to_end, until};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_order-service");

#[tokio::test]
async fn misspelt_settings_stop_the_start_and_are_all_named() {
    let output = run_to_end(
        PROGRAM,
        &[],
        &[
            ("BREW__DATABASE__ULR", "postgres://u:hunter2@h/d"),
            ("BREW__GRPC__ADDRES", "127.0.0.1:0"),
            ("BREW__DRAIN_GRACE_MS", "soon"),
        ],
    )
    .await;
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    for key in ["`database.ulr`", "`database.url`", "`grpc.addres`", "`drain_grace_ms`"] {
        assert!(said.contains(key), "{key} not in {said}");
    }
    assert!(!said.contains("hunter2"), "a secret is in {said}");
}

#[tokio::test]
async fn the_migrate_subcommand_makes_the_schema_and_may_run_twice() {
    let database = testkit::database(Vec::new()).await;
    for _ in 0..2 {
        let output = run_to_end(PROGRAM, &["migrate"], &[("BREW__DATABASE__URL", &database.url)]).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(database.number("select count(*) from menu").await, 8);
    let pool = database.pool().await;
    database::revert(&pool, migrations()).await.unwrap();
    database::migrate(&pool, migrations()).await.unwrap();
    assert_eq!(database.number("select count(*) from menu").await, 8);
}

/// Started before the migration, as an init container is; and a later version's schema is as good.
#[tokio::test]
async fn await_schema_ends_when_another_process_has_migrated() {
    let database = testkit::database(Vec::new()).await;
    let settings = [("BREW__DATABASE__URL", database.url.as_str())];
    let waiting = Service::start(PROGRAM, &["await-schema"], &settings);
    let client = database.client().await;
    let asks =
        "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    until("it to look", async || client.query_opt(asks, &[]).await.unwrap()).await;
    assert!(run_to_end(PROGRAM, &["migrate"], &settings).await.status.success());
    assert!(waiting.ended().await.success());
    let later = "insert into seaql_migrations (version, applied_at) values ('order_service_9999_later', 0)";
    client.batch_execute(later).await.unwrap();
    for command in ["migrate", "await-schema"] {
        let output = run_to_end(PROGRAM, &[command], &settings).await;
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn it_is_ready_while_its_database_is_there() {
    let database = testkit::database(migrations()).await;
    let grpc = free_address();
    let settings = [("BREW__GRPC__ADDRESS", grpc.as_str()), ("BREW__ORDERS__BACKGROUND", "false")];
    testkit::ready_while_the_database_is_there(PROGRAM, &database, &settings).await;
}

#[tokio::test]
async fn sigterm_ends_it_well() {
    let database = testkit::database(migrations()).await;
    let address = free_address();
    let service = Service::start(
        PROGRAM,
        &[],
        &[
            ("BREW__DATABASE__URL", &database.url),
            ("BREW__GRPC__ADDRESS", &address),
            ("BREW__KAFKA__BROKERS", &testkit::kafka().brokers),
        ],
    );
    until("the port to open", async || tokio::net::TcpStream::connect(&address).await.ok()).await;
    service.signal(Signal::SIGTERM);
    assert!(service.ended().await.success());
}
