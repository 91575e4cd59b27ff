//! Writing events, in the caller's transaction.

use std::collections::BTreeMap;

use events::{Event, OutboxId};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, Statement};
use serde_json::Value as Json;
use telemetry::{context, spans};
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::{Error, MAX_PAYLOAD_BYTES};

/// An event that is to be published if the transaction commits.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Whose event it is: the record's key, and the unit of order.
    pub aggregate_id: String,
    /// Where it goes.
    pub topic: String,
    /// What happened; the `event-type` header.
    pub event_type: String,
    /// What it says.
    pub payload: Json,
    /// Further record headers. What `traceparent` names is the parent of the span that creates the event; the row
    /// carries that span's own context, if spans are sent anywhere, else the header as it is.
    pub headers: BTreeMap<String, String>,
}

impl NewEvent {
    /// One of Brew's own events, for `topic`, in the trace that `headers` names.
    ///
    /// # Errors
    /// When the event cannot be written as JSON.
    pub fn of(topic: &str, event: &Event, headers: BTreeMap<String, String>) -> Result<Self, Error> {
        Ok(Self {
            aggregate_id: event.order_id().to_string(),
            topic: topic.to_owned(),
            event_type: event.event_type().to_owned(),
            payload: serde_json::to_value(event)?,
            headers,
        })
    }
}

/// Writes one event in `tx` and returns its row's id.
///
/// The caller holds its aggregate's lock by now (its row, `FOR UPDATE`, or an aggregate that is new in this very
/// transaction): then id order is commit order, and events are published in that order. A writer without such a
/// lock calls the SQL function `outbox_append` instead.
///
/// A pool is no transaction:
///
/// ```compile_fail,E0308
/// async fn dual_write(pool: sea_orm::DatabaseConnection, event: outbox::NewEvent) {
///     outbox::append(&pool, event).await.unwrap();
/// }
/// ```
///
/// while a transaction is:
///
/// ```
/// async fn in_step(tx: sea_orm::DatabaseTransaction, event: outbox::NewEvent) {
///     outbox::append(&tx, event).await.unwrap();
/// }
/// ```
///
/// # Errors
/// [`Error::TooLarge`], before anything is written. The database's; the transaction can then only be rolled back.
/// Cancelling leaves it in an unknown state: drop it.
pub async fn append(tx: &DatabaseTransaction, event: NewEvent) -> Result<OutboxId, Error> {
    let ids = append_all(tx, vec![event]).await?;
    ids.first().copied().ok_or_else(|| sea_orm::DbErr::RecordNotInserted.into())
}

/// Writes many events in `tx`, in their order, with one statement, and returns their rows' ids. The same
/// contract as [`append`].
///
/// # Errors
/// As [`append`].
pub async fn append_all(tx: &DatabaseTransaction, events: Vec<NewEvent>) -> Result<Vec<OutboxId>, Error> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let mut columns: [Vec<String>; 5] = Default::default();
    let event_ids: Vec<Uuid> = events.iter().map(|_| Uuid::new_v4()).collect();
    let mut spans: Vec<Span> = Vec::new();
    for (mut event, event_id) in events.into_iter().zip(&event_ids) {
        if spans::on() {
            let span =
                spans::create(&event.topic, &event.aggregate_id, &event_id.to_string(), &event.headers);
            event.headers.extend(context::of(&span));
            spans.push(span);
        }
        let [aggregates, topics, types, payloads, headers] = &mut columns;
        aggregates.push(event.aggregate_id);
        topics.push(event.topic);
        types.push(event.event_type);
        let payload = event.payload.to_string();
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(Error::TooLarge { bytes: payload.len(), limit: MAX_PAYLOAD_BYTES });
        }
        payloads.push(payload);
        headers.push(serde_json::to_string(&event.headers)?);
    }
    let [aggregates, topics, types, payloads, headers] = columns.map(Into::into);
    let values: [sea_orm::Value; 6] = [aggregates, topics, types, payloads, headers, event_ids.into()];
    let statement =
        Statement::from_sql_and_values(DbBackend::Postgres, include_str!("../sql/append.sql"), values);
    let insert =
        spans.first().map_or_else(Span::none, |span| span.in_scope(|| spans::statement("INSERT", "outbox")));
    let rows = tx.query_all_raw(statement).instrument(insert).await?;
    rows.iter().map(|row| Ok(OutboxId(row.try_get_by_index(0)?))).collect()
}
