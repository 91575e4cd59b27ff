//! The binary: its settings, its migrations, its end.

use nix::sys::signal::Signal;
use order_service::migrations;
use testkit::{Service, run_to_end};

const PROGRAM: &str = env!("CARGO_BIN_EXE_order-service");

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

#[tokio::test]
async fn sigterm_ends_it_well() {
    let database = testkit::database(migrations()).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = port.to_string();
    let service = Service::start(
        PROGRAM,
        &[],
        &[("BREW__DATABASE__URL", &database.url), ("BREW__GRPC__ADDRESS", &address)],
    );
    testkit::until("the port to open", async || tokio::net::TcpStream::connect(&address).await.ok()).await;
    service.signal(Signal::SIGTERM);
    assert!(service.ended().await.success());
}
