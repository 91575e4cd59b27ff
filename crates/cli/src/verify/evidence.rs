//! What there is to look at, read once.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::Context;
use events::{header, topic};
use futures::future::{try_join, try_join_all};
use messaging::read_all;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::{lab, local::State};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A row of an outbox.
pub(crate) struct Row {
    pub(crate) source: String,
    pub(crate) id: i64,
    pub(crate) aggregate: String,
    pub(crate) topic: String,
    pub(crate) event_id: Uuid,
    pub(crate) event_type: String,
    pub(crate) published: bool,
}

/// A record of a topic.
pub(crate) struct Record {
    pub(crate) place: String,
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) source: String,
    pub(crate) id: i64,
    pub(crate) event_id: Option<Uuid>,
    pub(crate) key: String,
    pub(crate) payload: Vec<u8>,
}

/// An order, with what the other services think of it.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) total_minor: i64,
    pub(crate) currency: String,
}

/// Stock of one sku.
pub(crate) struct Stock {
    pub(crate) sku: String,
    pub(crate) opening: i64,
    pub(crate) available: i64,
    pub(crate) restocked: i64,
    /// Reserved and committed.
    pub(crate) taken: i64,
}

/// What the provider has booked for one order.
#[derive(Default, Clone)]
pub(crate) struct Booked {
    pub(crate) authorizations: i64,
    /// Authorizations that still hold money.
    pub(crate) held: i64,
    pub(crate) captures: i64,
    pub(crate) net_minor: i64,
    pub(crate) currencies: BTreeSet<String>,
}

/// Everything.
pub(crate) struct Evidence {
    pub(crate) rows: Vec<Row>,
    pub(crate) records: Vec<Record>,
    /// Event ids by consumer, as each has noted them.
    pub(crate) processed: BTreeMap<&'static str, BTreeSet<Uuid>>,
    /// Event ids in dead letter topics.
    pub(crate) dead: BTreeSet<Uuid>,
    pub(crate) orders: Vec<Order>,
    pub(crate) reservations: BTreeMap<String, String>,
    pub(crate) payments: BTreeMap<String, String>,
    pub(crate) stock: Vec<Stock>,
    pub(crate) booked: BTreeMap<String, Booked>,
    /// Calls to the provider that are not done.
    pub(crate) open_calls: Vec<String>,
}

impl Evidence {
    pub(crate) async fn gather(state: &State) -> anyhow::Result<Self> {
        let orders = lab::open(state, lab::ORDERS).await?;
        let inventory = lab::open(state, lab::INVENTORY).await?;
        let payments = lab::open(state, lab::PAYMENTS).await?;
        let gateway = lab::open(state, lab::GATEWAY).await?;
        let mut rows = Vec::new();
        for client in [&orders, &inventory, &payments] {
            rows.extend(outbox(client).await.context("read an outbox")?);
        }
        let (records, dead) = records(state).await.context("read the topics")?;
        let mut processed = BTreeMap::new();
        for (consumer, client) in
            [("order-service", &orders), ("inventory-service", &inventory), ("payment-service", &payments)]
        {
            let sql = "select event_id from processed_outbox_ids where consumer = $1";
            let found = client.query(sql, &[&consumer]).await?;
            processed.insert(consumer, found.iter().map(|row| row.get(0)).collect());
        }
        let open_calls =
            "select order_id || ' ' || operation || ' is ' || state || coalesce(': ' || last_error, '')
                            from gateway_calls where state <> 'done' order by id";
        Ok(Self {
            rows,
            records,
            processed,
            dead,
            orders: all_orders(&orders).await?,
            reservations: pairs(&inventory, "select order_id, status from reservations").await?,
            payments: pairs(&payments, "select order_id, status from payments").await?,
            stock: stock(&inventory).await?,
            booked: booked(&gateway).await?,
            open_calls: payments.query(open_calls, &[]).await?.iter().map(|row| row.get(0)).collect(),
        })
    }
}

impl Evidence {
    /// How many orders there are of each status.
    pub(crate) fn ends(&self) -> BTreeMap<&str, usize> {
        let mut ends = BTreeMap::new();
        for order in &self.orders {
            *ends.entry(order.status.as_str()).or_default() += 1;
        }
        ends
    }
}

async fn outbox(client: &Client) -> anyhow::Result<Vec<Row>> {
    let sql = "
        select source, id, aggregate_id, topic, event_id, coalesce(event_type, payload->>'type', 'unknown'),
               published_at is not null
          from outbox order by id";
    let rows = client.query(sql, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| Row {
            source: row.get(0),
            id: row.get(1),
            aggregate: row.get(2),
            topic: row.get(3),
            event_id: row.get(4),
            event_type: row.get(5),
            published: row.get(6),
        })
        .collect())
}

async fn records(state: &State) -> anyhow::Result<(Vec<Record>, BTreeSet<Uuid>)> {
    let kafka = lab::kafka_options(state.brokers()?);
    let specs = lab::topic_specs(1);
    let dead_letters = specs.iter().filter(|spec| spec.extra_bytes > 0).map(|spec| spec.name.as_str());
    let (events, letters) = try_join(
        try_join_all(topic::ALL.iter().map(|name| read_all(&kafka, name, TIMEOUT))),
        try_join_all(dead_letters.map(|name| read_all(&kafka, name, TIMEOUT))),
    )
    .await?;
    let records = events
        .into_iter()
        .flatten()
        .map(|found| {
            let text = |name| found.header(name).unwrap_or_default().to_owned();
            Record {
                place: found.place().to_string(),
                topic: found.topic.clone(),
                partition: found.partition,
                source: text(header::OUTBOX_SOURCE),
                id: text(header::OUTBOX_ID).parse().unwrap_or_default(),
                event_id: text(header::EVENT_ID).parse().ok(),
                key: String::from_utf8_lossy(&found.key).into_owned(),
                payload: found.payload,
            }
        })
        .collect();
    let dead = letters
        .iter()
        .flatten()
        .filter_map(|one| one.header(header::EVENT_ID)?.parse::<Uuid>().ok())
        .collect();
    Ok((records, dead))
}

async fn all_orders(client: &Client) -> anyhow::Result<Vec<Order>> {
    let sql = "select 'order-' || id, status, total_minor, currency from orders order by id";
    let rows = client.query(sql, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| Order {
            id: row.get(0),
            status: row.get(1),
            total_minor: row.get(2),
            currency: row.get(3),
        })
        .collect())
}

async fn pairs(client: &Client, sql: &str) -> anyhow::Result<BTreeMap<String, String>> {
    Ok(client.query(sql, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn stock(client: &Client) -> anyhow::Result<Vec<Stock>> {
    let sql = "
        select s.sku, s.opening, s.available,
               (select coalesce(sum(quantity), 0) from restocks r where r.sku = s.sku)::bigint,
               (select coalesce(sum(l.quantity), 0)
                  from reservation_lines l join reservations r on r.order_id = l.order_id
                 where l.sku = s.sku and r.status in ('reserved', 'committed'))::bigint
          from stock s order by s.sku";
    let rows = client.query(sql, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| Stock {
            sku: row.get(0),
            opening: row.get(1),
            available: row.get(2),
            restocked: row.get(3),
            taken: row.get(4),
        })
        .collect())
}

async fn booked(client: &Client) -> anyhow::Result<BTreeMap<String, Booked>> {
    let mut booked: BTreeMap<String, Booked> = BTreeMap::new();
    let ledger = "select reference, operation, amount_minor, currency from ledger order by id";
    for row in client.query(ledger, &[]).await? {
        let entry = booked.entry(row.get(0)).or_default();
        let (operation, amount): (&str, i64) = (row.get(1), row.get(2));
        match operation {
            "authorize" => entry.authorizations += 1,
            "capture" => {
                entry.captures += 1;
                entry.net_minor += amount;
            }
            "refund" => entry.net_minor -= amount,
            _ => {}
        }
        entry.currencies.insert(row.get(3));
    }
    let held =
        "select reference, count(*) from authorizations where status = 'authorized' group by reference";
    for row in client.query(held, &[]).await? {
        booked.entry(row.get(0)).or_default().held = row.get(1);
    }
    Ok(booked)
}
