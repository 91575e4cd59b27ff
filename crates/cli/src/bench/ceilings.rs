//! What the parts of a relay reach alone on this machine. None of them is a relay: each leaves out something that a
//! relay must do.

use std::{borrow::Cow, time::Instant};

use anyhow::{Context, bail};
use events::header;
use futures::TryStreamExt;
use messaging::{Producer, Record};
use tokio_postgres::{Client, Statement};

use super::{
    Args,
    drain::rest,
    ground::{Ground, Part, TIMEOUT},
    meter::{Meter, Span, wait_for_quiet},
    seed::{self, aggregates, payload},
};

/// The table and the index that every guide to polling an outbox gives. The further columns have the seed's values.
const TABLE: &str = "
    create table outbox (
        id           bigserial   not null,
        aggregate_id text        not null,
        topic        text        not null,
        payload      jsonb       not null,
        event_type   text        not null,
        headers      jsonb       not null,
        created_at   timestamptz not null default now(),
        published_at timestamptz null,
        constraint outbox_pkey primary key (id)
    );
    create index outbox_unpublished on outbox (id) where published_at is null";

const FETCH: &str = "
    select id, aggregate_id, topic, payload::text, event_type, headers::text from outbox
     where published_at is null order by id limit $1 for update skip locked";

const MARK: &str = "update outbox set published_at = now() where id = any ($1::bigint[])";

/// Rows a transaction.
const BATCH: i64 = 1000;

/// Records that wait for their acks together.
const SEND: usize = 10_000;

/// As many times as many events as a drain has, or it would be over too soon.
const PRODUCED: u64 = 3;

const WARMUPS: u64 = 6;

/// One loop that fetches and marks, without Kafka: a naive poller's transactions.
pub(crate) struct FetchAndMark<'g> {
    ground: &'g Ground,
    client: Client,
    fetch: Statement,
    mark: Statement,
    pub(crate) spans: Vec<Span>,
}

impl<'g> FetchAndMark<'g> {
    pub(crate) async fn open(ground: &'g Ground) -> anyhow::Result<Self> {
        let client = ground.database(Part::FetchAndMark).await?;
        client.batch_execute(TABLE).await?;
        let (fetch, mark) = (client.prepare(FETCH).await?, client.prepare(MARK).await?);
        Ok(Self { ground, client, fetch, mark, spans: Vec::new() })
    }

    pub(crate) async fn round(&mut self, args: &Args) -> anyhow::Result<()> {
        seed::fill(self.ground, Part::FetchAndMark, "none", args.events, 10).await?;
        rest(&self.client).await?;
        wait_for_quiet(self.ground, args.quiet_wait).await?;
        let watch = self.ground.connect(Part::FetchAndMark).await?;
        let meter = Meter::start(self.ground, None, &watch).await?;
        let began = Instant::now();
        let mut done = 0;
        loop {
            match self.turn().await? {
                0 => break,
                rows => done += rows,
            }
        }
        if done != args.events {
            bail!("fetch and mark: {done} rows instead of {}", args.events);
        }
        let seconds = began.elapsed().as_secs_f64();
        self.spans.push(meter.stop(args.events, seconds, &watch).await?);
        Ok(())
    }

    async fn turn(&mut self) -> anyhow::Result<u64> {
        let tx = self.client.transaction().await?;
        let ids: Vec<i64> = {
            let rows = tx.query_raw(&self.fetch, [BATCH]).await?;
            rows.map_ok(|row| row.get::<_, i64>(0)).try_collect().await?
        };
        let marked = tx.execute(&self.mark, &[&ids]).await?;
        tx.commit().await?;
        Ok(marked)
    }
}

/// Sends without Postgres, through the relay's own producer.
pub(crate) struct Produce<'g> {
    ground: &'g Ground,
    watch: Client,
    topic: String,
    producer: Producer,
    pub(crate) spans: Vec<Span>,
}

impl<'g> Produce<'g> {
    /// Connects, and sends so many records again and again, until a new broker has compiled what that takes.
    pub(crate) async fn open(ground: &'g Ground, events: u64) -> anyhow::Result<Self> {
        let watch = ground.database(Part::Produce).await?;
        let topic = ground.topic(Part::Produce).await?;
        let mut producer = Producer::connect(&ground.kafka()?, "brew-bench", TIMEOUT).await?;
        let records: Vec<Made> = made(events).collect();
        for _ in 0..WARMUPS {
            for records in records.chunks(SEND) {
                send(&mut producer, &topic, records).await?;
            }
        }
        Ok(Self { ground, watch, topic, producer, spans: Vec::new() })
    }

    pub(crate) async fn round(&mut self, args: &Args) -> anyhow::Result<()> {
        // Made before, since a relay does not make its events.
        let events = args.events * PRODUCED;
        let records: Vec<Made> = made(args.events).collect();
        wait_for_quiet(self.ground, args.quiet_wait).await?;
        let meter = Meter::start(self.ground, None, &self.watch).await?;
        let began = Instant::now();
        for _ in 0..PRODUCED {
            for records in records.chunks(SEND) {
                send(&mut self.producer, &self.topic, records).await?;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        self.spans.push(meter.stop(events, seconds, &self.watch).await?);
        Ok(())
    }

    pub(crate) async fn close(self) -> Vec<Span> {
        self.producer.retire().await;
        self.spans
    }
}

/// What a record is made of.
pub(crate) struct Made {
    pub(crate) key: String,
    pub(crate) payload: String,
    pub(crate) headers: [(&'static str, String); 7],
}

impl Made {
    /// Event `number`, with every header that a relay sends.
    pub(crate) fn new(number: u64, key: String, event_type: &str, payload: String) -> Self {
        let headers = [
            (header::OUTBOX_ID, number.to_string()),
            (header::AGGREGATE_ID, key.clone()),
            (header::OUTBOX_SOURCE, "bench".to_owned()),
            (header::EVENT_ID, uuid::Uuid::new_v4().to_string()),
            (header::EVENT_TYPE, event_type.to_owned()),
            (header::CONTENT_TYPE, header::JSON.to_owned()),
            (header::TRACEPARENT, seed::traceparent(true)),
        ];
        Self { key, payload, headers }
    }

    fn record<'a>(&'a self, topic: &'a str) -> Record<'a> {
        Record {
            topic,
            key: self.key.as_bytes(),
            payload: self.payload.as_bytes(),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (*name, Cow::Borrowed(value.as_bytes())))
                .collect(),
        }
    }
}

fn made(events: u64) -> impl Iterator<Item = Made> {
    let aggregates = aggregates(events);
    (0..events).map(move |number| {
        let key = format!("bench-{}", fastrand::Rng::with_seed(number).u64(..aggregates));
        let payload = payload(number, &key);
        Made::new(number, key, seed::EVENT_TYPE, payload)
    })
}

/// Sends all of `records`, or fails.
pub(crate) async fn send(producer: &mut Producer, topic: &str, records: &[Made]) -> anyhow::Result<()> {
    let records: Vec<Record<'_>> = records.iter().map(|made| made.record(topic)).collect();
    let outcome = producer.send(&records, tokio::time::Instant::now() + TIMEOUT).await;
    if let Some(failure) = outcome.failure {
        bail!("records were not acknowledged: {failure}");
    }
    outcome.acks.iter().all(Option::is_some).then_some(()).context("records were not acknowledged")
}
