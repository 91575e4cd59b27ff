//! The spans of an order's trace, with their names and attributes: semantic conventions 1.44, where
//! messaging is still in development. A span is made only where it belongs to a trace that is sent somewhere.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use opentelemetry::{
    KeyValue, StringValue, Value,
    trace::{Link, Span as _, SpanKind, Status, TraceContextExt, Tracer},
};
use opentelemetry_sdk::trace::SdkTracer;
use tracing::{Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::context;

/// The target of all spans that are sent; others stay in the process.
pub const TARGET: &str = "brew";

/// Set where spans are sent somewhere.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Spans are sent by `tracer` from now on; the first one stays.
pub(crate) fn begin(tracer: SdkTracer) {
    // A second start in one process fails where it subscribes.
    let _ = TRACER.set(tracer);
}

/// Whether spans are sent anywhere at all: then it is worth to make them.
#[must_use]
pub fn on() -> bool {
    TRACER.get().is_some()
}

/// A statement in the current trace; none outside of one, so that idle polling leaves no spans.
#[must_use]
pub fn statement(operation: &'static str, table: &'static str) -> Span {
    if !on() || Span::current().is_none() {
        return Span::none();
    }
    let summary = format!("{operation} {table}");
    tracing::info_span!(
        target: TARGET,
        "statement",
        otel.name = summary,
        otel.kind = "client",
        db.system.name = "postgresql",
        db.operation.name = operation,
        db.collection.name = table,
        db.query.summary = summary,
    )
}

/// A step inside of a service, whose parent is set by the caller; none where spans are sent nowhere.
#[must_use]
pub fn step(name: &'static str) -> Span {
    if on() {
        tracing::info_span!(target: TARGET, "step", otel.name = name, otel.kind = "internal")
    } else {
        Span::none()
    }
}

/// The event is written: its context is what row and record carry. Its parent is what `parent` names, else the current
/// span.
#[must_use]
pub fn create(topic: &str, key: &str, event_id: &str, parent: &BTreeMap<String, String>) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "create",
        otel.name = format!("create {topic}"),
        otel.kind = "producer",
        messaging.system = "kafka",
        messaging.operation.name = "create",
        messaging.operation.type = "create",
        messaging.destination.name = topic,
        messaging.message.id = event_id,
        messaging.kafka.message.key = key,
        messaging.message.conversation_id = key,
    );
    let current = Span::current().context().span().span_context().clone();
    // Where it is written in another trace, as when an order is cancelled by a later call.
    if let Some(parent) = context::set_parent(&span, parent)
        && current.is_valid()
        && current.trace_id() != parent.trace_id()
    {
        span.add_link(current);
    }
    span
}

/// Where a record stands, and what it is.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its partition, if known.
    pub partition: Option<i32>,
    /// Its offset, if known.
    pub offset: Option<i64>,
    /// Its key.
    pub key: &'a str,
    /// The event's UUID.
    pub event_id: &'a str,
}

/// A try to apply an event: child of the span that created it, and linked to it. `messaging.kafka.offset` and the
/// partition are the record's.
#[must_use]
pub fn process(group: &str, message: Message<'_>, created: &BTreeMap<String, String>) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "process",
        otel.name = format!("process {}", message.topic),
        otel.kind = "consumer",
        otel.status_code = Empty,
        error.type = Empty,
        messaging.system = "kafka",
        messaging.operation.name = "process",
        messaging.operation.type = "process",
        messaging.consumer.group.name = group,
        messaging.destination.name = message.topic,
        messaging.destination.partition.id = message.partition.map(|partition| partition.to_string()),
        messaging.kafka.offset = message.offset,
        messaging.message.id = message.event_id,
        messaging.kafka.message.key = message.key,
        brew.message.duplicate = Empty,
    );
    if let Some(created) = context::set_parent(&span, created) {
        span.add_link(created);
    }
    span
}

/// Marks the current attempt as failed; `kind` is one of few words.
pub fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// Who sends records, to whom; the same for all of a batch.
#[derive(Debug, Clone)]
pub struct Sender {
    client_id: StringValue,
    host: StringValue,
    port: i64,
}

impl Sender {
    /// A client of `broker`, which is `host:port`, the first of several.
    #[must_use]
    pub fn new(client_id: &str, broker: &str) -> Self {
        let (host, port) = broker.rsplit_once(':').unwrap_or((broker, "9092"));
        Self { client_id: shared(client_id), host: shared(host), port: port.parse().unwrap_or(9092) }
    }
}

/// Copied by counting.
fn shared(text: &str) -> StringValue {
    Arc::<str>::from(text).into()
}

/// One record that was sent, or not.
#[derive(Debug, Clone, Copy)]
pub struct Send<'a> {
    /// Where it stands.
    pub message: Message<'a>,
    /// The row's headers.
    pub created: &'a BTreeMap<String, String>,
    /// Who sent it, to whom.
    pub sender: &'a Sender,
    /// Of an outbox's row: how long it had waited, in milliseconds, and which try this is, from 1.
    pub waited: Option<(i64, i64)>,
    /// Why it was not acknowledged, in one of few words.
    pub error: Option<&'static str>,
}

/// Whether spans are sent and `carrier` names a trace that is sampled; looks at the flags alone.
#[must_use]
pub fn sampled(carrier: &BTreeMap<String, String>) -> bool {
    let flag = |parent: &String| parent.as_bytes().last().is_some_and(|flags| (flags & 1) == 1);
    on() && carrier.get("traceparent").is_some_and(flag)
}

/// Tells of a record that was sent between `began` and now; its trace is [`sampled`].
pub fn send(send: &Send<'_>, began: SystemTime) {
    let Some(tracer) = TRACER.get() else { return };
    let parent = context::extract(send.created);
    let created = parent.span().span_context().clone();
    if !created.is_valid() {
        return;
    }
    let builder = tracer
        .span_builder(format!("send {}", send.message.topic))
        .with_kind(SpanKind::Client)
        .with_start_time(began)
        .with_links(vec![Link::with_context(created)])
        .with_attributes(attributes(send));
    let mut span = tracer.build_with_context(builder, &parent);
    if let Some(error) = send.error {
        span.set_status(Status::error(error));
    }
    span.end();
}

fn attributes(send: &Send<'_>) -> Vec<KeyValue> {
    let Send { message, sender, .. } = send;
    let text = |value: &str| Value::String(StringValue::from(value.to_owned()));
    let mut attributes = Vec::with_capacity(14);
    attributes.extend([
        KeyValue::new("messaging.system", "kafka"),
        KeyValue::new("messaging.operation.name", "send"),
        KeyValue::new("messaging.operation.type", "send"),
        KeyValue::new("messaging.destination.name", text(message.topic)),
        KeyValue::new("messaging.message.id", text(message.event_id)),
        KeyValue::new("messaging.kafka.message.key", text(message.key)),
        KeyValue::new("messaging.client.id", sender.client_id.clone()),
        KeyValue::new("server.address", sender.host.clone()),
        KeyValue::new("server.port", sender.port),
    ]);
    if let Some((wait_ms, attempt)) = send.waited {
        attributes.push(KeyValue::new("brew.outbox.wait_ms", wait_ms));
        attributes.push(KeyValue::new("brew.outbox.attempt", attempt));
    }
    if let (Some(partition), Some(offset)) = (message.partition, message.offset) {
        attributes.push(KeyValue::new("messaging.destination.partition.id", text(&partition.to_string())));
        attributes.push(KeyValue::new("messaging.kafka.offset", offset));
    }
    attributes.extend(send.error.map(|error| KeyValue::new("error.type", error)));
    attributes
}
