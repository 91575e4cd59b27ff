//! What a fault in the middle leaves behind: nothing.

use futures::{StreamExt, stream::FuturesUnordered};
use secrecy::ExposeSecret;
use tonic::Code;

use crate::shop::{Shop, order};

#[tokio::test]
async fn a_failing_outbox_insert_leaves_no_order() {
    let shop = Shop::open().await;
    let client = shop.database.client().await;
    client.batch_execute("alter table outbox rename to outbox_away").await.unwrap();
    let status = shop.place(order(&[("latte", 1)])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    client.batch_execute("alter table outbox_away rename to outbox").await.unwrap();
    assert_eq!(shop.rows().await, (0, 0, 0));
    shop.place(order(&[("latte", 1)])).await.unwrap();
    assert_eq!(shop.rows().await, (1, 1, 1));
}

/// The connection dies after the order is inserted and before its event is: a trigger ends the session that runs
/// it.
#[tokio::test]
async fn a_connection_that_dies_between_the_two_inserts_leaves_no_order() {
    let shop = Shop::open().await;
    let client = shop.database.client().await;
    client
        .batch_execute(
            "create function die() returns trigger language plpgsql as
                 $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
             create trigger die before insert on outbox for each row execute function die();",
        )
        .await
        .unwrap();
    let status = shop.place(order(&[("latte", 1)])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    client.batch_execute("drop trigger die on outbox").await.unwrap();
    assert_eq!(shop.rows().await, (0, 0, 0));
}

#[tokio::test]
async fn while_postgres_is_away_calls_are_unavailable_and_afterwards_they_work() {
    let shop = Shop::open().await;
    shop.place(order(&[("latte", 1)])).await.unwrap();
    let name = shop.database.url.rsplit('/').next().unwrap().to_owned();
    let admin = testkit::database(Vec::new()).await.client().await;
    let away = format!(
        "alter database {name} allow_connections false;
         select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
    );
    admin.batch_execute(&away).await.unwrap();
    let status = shop.place(order(&[("latte", 1)])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(!status.message().contains("postgres://"));
    admin.batch_execute(&format!("alter database {name} allow_connections true")).await.unwrap();
    shop.place(order(&[("latte", 1)])).await.unwrap();
    assert_eq!(shop.rows().await, (2, 2, 2));
}

/// As many calls as there is room for wait for the database; one more is told so at once, and stores nothing.
#[tokio::test]
async fn calls_beyond_the_room_are_turned_away_while_the_others_are_served() {
    const ROOM: usize = 4;
    let shop = Shop::open_with(|settings| settings.grpc.max_calls = ROOM).await;
    let mut client = shop.database.client().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("lock table orders in access exclusive mode").await.unwrap();
    let waiting = (0..ROOM).map(|_| shop.place(order(&[("latte", 1)])));
    let waiting = futures::future::join_all(waiting);
    let turned_away = async {
        // Watching from another session: all have got as far as the lock.
        let blocked = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        testkit::until("the room is full", async || {
            (shop.database.number(blocked).await == i64::try_from(ROOM).unwrap()).then_some(())
        })
        .await;
        let status = shop.place(order(&[("latte", 1)])).await.unwrap_err();
        lock.commit().await.unwrap();
        status
    };
    let (served, status) = tokio::join!(waiting, turned_away);
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(served.iter().all(Result::is_ok), "{served:?}");
    shop.place(order(&[("latte", 1)])).await.unwrap();
    let five = i64::try_from(ROOM + 1).unwrap();
    assert_eq!(shop.rows().await, (five, five, five));
}

/// A database that takes longer to connect to than a call waits: the calls give up, their connections do not, or none
/// would ever be there while calls come.
#[tokio::test]
async fn connections_that_open_slowly_outlive_the_calls_that_wanted_them() {
    let proxy = testkit::Proxy::start().await;
    let shop = Shop::open_with(|settings| {
        settings.database = through(&proxy, settings.database.clone());
        settings.database.acquire_timeout_ms = 50;
    })
    .await;
    let most = 10;
    for _ in 0..3 {
        let calls = (0..2 * most).map(|_| shop.place(order(&[("latte", 1)])));
        for refused in futures::future::join_all(calls).await {
            assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
        }
    }
    // Nor is one begun for each call that comes meanwhile.
    assert!((1..=most).contains(&proxy.connections()), "{}", proxy.connections());
    proxy.lead_to(server(&shop.database.url));
    testkit::until("a call is served", async || shop.place(order(&[("latte", 1)])).await.ok()).await;
    assert!(proxy.connections() <= most, "{}", proxy.connections());
}

/// Calls that all hang in the database leave connections to the service's own work.
#[tokio::test]
async fn calls_that_hang_leave_the_service_its_own_connections() {
    let shop = Shop::open_with(|settings| {
        settings.database.max_connections = 4;
        settings.database.acquire_timeout_ms = 300;
    })
    .await;
    let mut client = shop.database.client().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("lock table orders in access exclusive mode").await.unwrap();
    let mut calls: FuturesUnordered<_> = (0..8).map(|_| shop.place(order(&[("latte", 1)]))).collect();
    for _ in 0..6 {
        assert_eq!(calls.next().await.unwrap().unwrap_err().code(), Code::Unavailable);
    }
    lock.commit().await.unwrap();
    while let Some(served) = calls.next().await {
        served.unwrap();
    }
    assert_eq!(shop.rows().await, (2, 2, 2));
}

/// `options`, but by way of `proxy`.
fn through(proxy: &testkit::Proxy, options: database::Options) -> database::Options {
    let url =
        options.url.expose_secret().replace(server(options.url.expose_secret()), &proxy.address.to_string());
    database::Options { url: url.into(), ..options }
}

/// Host and port in a database's URL.
fn server(url: &str) -> &str {
    let (_, rest) = url.rsplit_once('@').unwrap();
    rest.split('/').next().unwrap()
}
