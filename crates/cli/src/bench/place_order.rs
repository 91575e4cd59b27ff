//! What the outbox row costs the transaction that places an order. Said by SQL: the statements of `PlaceOrder` in its
//! database, on one connection, with and without the row in turns; not through gRPC, where the cost would be lost in
//! what is common to both.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use events::header;
use hdrhistogram::Histogram;
use outbox::NewEvent;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, Statement,
    TransactionTrait, Value,
};
use serde::Serialize;
use tokio_postgres::Client;

use crate::output::note;

use super::{
    Args,
    drain::rest,
    ground::{Ground, Part},
    latency::Times,
    meter::{wait_for_quiet, wal_position},
    running::migrate,
    seed::{payload, traceparent},
};

/// Orders with the row, then as many without, and again: what else happens on the machine happens to both.
const TURN: u64 = 20;

/// Of each kind.
const ORDERS: std::ops::RangeInclusive<u64> = 100..=2000;

/// Transactions of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct Kind {
    pub(crate) times: Times,
    pub(crate) wal_bytes: f64,
}

/// Both kinds.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    pub(crate) orders: u64,
    pub(crate) with: Kind,
    pub(crate) without: Kind,
}

impl Cost {
    /// How much longer the median is with the row, in percent of the one without.
    pub(crate) fn percent(&self) -> f64 {
        (self.with.times.p50_ms / self.without.times.p50_ms - 1.0) * 100.0
    }
}

pub(crate) async fn measure(ground: &Ground, args: &Args) -> anyhow::Result<Cost> {
    let client = ground.database(Part::PlaceOrder).await?;
    let url = ground.url(Part::PlaceOrder)?;
    migrate("order-service", &["migrate"], ("BREW__DATABASE__URL", url.clone())).await?;
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).test_before_acquire(false).sqlx_logging(false);
    let db = Database::connect(options).await?;
    let orders = (args.events / 100).clamp(*ORDERS.start(), *ORDERS.end());

    let mut with = Taken::new()?;
    let mut without = Taken::new()?;
    // The first ones only fill the caches.
    for row in [true, false] {
        Taken::new()?.turn(&db, &client, row).await?;
    }
    rest(&client).await?;
    wait_for_quiet(ground, args.quiet_wait).await?;
    for _ in 0..orders.div_ceil(TURN) {
        with.turn(&db, &client, true).await?;
        without.turn(&db, &client, false).await?;
    }
    db.close().await?;
    let orders = with.us.len();
    let cost = Cost { orders, with: with.kind(), without: without.kind() };
    note(format_args!("  PlaceOrder: {:+.1} % with the outbox row", cost.percent()));
    Ok(cost)
}

struct Taken {
    us: Histogram<u64>,
    wal_bytes: i64,
}

impl Taken {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { us: Histogram::new(3)?, wal_bytes: 0 })
    }

    async fn turn(&mut self, db: &DatabaseConnection, client: &Client, row: bool) -> anyhow::Result<()> {
        let before = wal_position(client).await?;
        for _ in 0..TURN {
            let took = place(db, row).await?;
            self.us.record(u64::try_from(took.as_micros())?)?;
        }
        self.wal_bytes += wal_position(client).await? - before;
        Ok(())
    }

    fn kind(&self) -> Kind {
        Kind { times: Times::of(&self.us), wal_bytes: self.wal_bytes as f64 / self.us.len().max(1) as f64 }
    }
}

/// The statements of `place_order` in order-service, for an order of two lines.
async fn place(db: &DatabaseConnection, row: bool) -> anyhow::Result<Duration> {
    let key = uuid::Uuid::new_v4().to_string();
    let began = Instant::now();
    let tx = db.begin().await?;
    let by_key = "select id, customer, status, total_minor from orders where idempotency_key = $1";
    query(&tx, by_key, [key.clone().into()]).await?;
    let menu = "select sku, name, price_minor, currency from menu where sku in ($1, $2)";
    query(&tx, menu, ["latte".into(), "mocha".into()]).await?;
    let order = "
        insert into orders (customer, status, total_minor, currency, version, idempotency_key, request_fingerprint)
        values ($1, 'pending', 870, 'EUR', 1, $2, $3)
        on conflict (idempotency_key) do nothing returning id";
    let fingerprint: Value = vec![0_u8; 32].into();
    let made = query(&tx, order, ["a customer of the bench".into(), key.into(), fingerprint]).await?;
    let id: i64 = made.first().context("no order was made")?.try_get_by_index(0)?;
    let lines = "
        insert into order_lines (order_id, position, sku, quantity, unit_price_minor)
        values ($1, 1, 'latte', 1, 420), ($1, 2, 'mocha', 1, 450)";
    query(&tx, lines, [id.into()]).await?;
    if row {
        outbox::append(&tx, event(id)?).await?;
    }
    tx.commit().await?;
    Ok(began.elapsed())
}

fn event(id: i64) -> anyhow::Result<NewEvent> {
    let aggregate_id = format!("order-{id}");
    Ok(NewEvent {
        payload: serde_json::from_str(&payload(u64::try_from(id)?, &aggregate_id))?,
        aggregate_id,
        topic: events::topic::ORDERS.to_owned(),
        event_type: "order.created".to_owned(),
        headers: BTreeMap::from([(header::TRACEPARENT.to_owned(), traceparent(true))]),
    })
}

async fn query<const N: usize>(
    tx: &DatabaseTransaction,
    sql: &str,
    values: [Value; N],
) -> anyhow::Result<Vec<sea_orm::QueryResult>> {
    let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
    Ok(tx.query_all_raw(statement).await?)
}
