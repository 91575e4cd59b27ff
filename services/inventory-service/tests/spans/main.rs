//! The spans of an event's way through a service, captured in a process of their own: where none are captured, a row
//! carries another context.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../it/shelf.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod shelf;

use std::{collections::BTreeMap, sync::LazyLock};

use events::header;
use opentelemetry::trace::{SpanId, SpanKind, TraceId};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use uuid::Uuid;

use shelf::{Order, Shelf, order};

/// What all tests of this process have made.
static SPANS: LazyLock<InMemorySpanExporter> = LazyLock::new(|| {
    let exporter = InMemorySpanExporter::default();
    telemetry::init_traces_to(exporter.clone(), "tester").unwrap();
    exporter
});

/// Which span of another process has created an event.
struct Created {
    trace: TraceId,
    span: SpanId,
}

/// An order whose creation is in a trace of its own.
fn traced(number: i64, flags: &str) -> (Order, Created) {
    let (trace, span) = (Uuid::new_v4().simple().to_string(), &Uuid::new_v4().simple().to_string()[..16]);
    let order = order(number, &[("latte", 1)])
        .with(header::TRACEPARENT, &format!("00-{trace}-{span}-{flags}"))
        .with(header::TRACESTATE, "shop=1");
    let created =
        Created { trace: TraceId::from_hex(&trace).unwrap(), span: SpanId::from_hex(span).unwrap() };
    (order, created)
}

fn of_trace(trace: TraceId) -> Vec<SpanData> {
    let all = SPANS.get_finished_spans().unwrap();
    all.into_iter().filter(|span| span.span_context.trace_id() == trace).collect()
}

fn named(spans: &[SpanData], name: &str) -> Vec<SpanData> {
    spans.iter().filter(|span| span.name == name).cloned().collect()
}

fn attributes(span: &SpanData) -> BTreeMap<&str, String> {
    span.attributes.iter().map(|pair| (pair.key.as_str(), pair.value.to_string())).collect()
}

/// The process spans of `order`, whichever trace they are in.
fn processed(order: &Order) -> Vec<SpanData> {
    let id = &order.headers[header::EVENT_ID];
    let all = SPANS.get_finished_spans().unwrap().into_iter();
    all.filter(|span| {
        span.span_kind == SpanKind::Consumer && attributes(span).get("messaging.message.id") == Some(id)
    })
    .collect()
}

#[tokio::test]
async fn an_events_way_has_its_names_kinds_parents_links_and_attributes() {
    LazyLock::force(&SPANS);
    let shelf = Shelf::new().await;
    let answers = testkit::topic(&testkit::kafka(), None).await;
    let mut settings = shelf.settings("a");
    settings.topics.inventory.clone_from(&answers);
    let (order, created) = traced(1, "01");
    shelf.send(&[order.clone(), order.clone()]).await;
    assert_eq!(shelf.consume_with(settings).await, (1, 1, 0));
    testkit::drain(&shelf.database.url, &testkit::kafka()).await;

    let spans = of_trace(created.trace);
    let process = named(&spans, &format!("process {}", shelf.topic));
    let [first, again] = process.as_slice() else { panic!("{process:#?}") };
    for span in [first, again] {
        assert_eq!((span.parent_span_id, &span.span_kind), (created.span, &SpanKind::Consumer));
        assert!(span.links.iter().any(|link| link.span_context.span_id() == created.span), "{span:#?}");
        assert_eq!(span.span_context.trace_state().header(), "shop=1");
    }
    process_says(&attributes(first), &shelf.topic, &order);
    let (told, told_again) = (attributes(first), attributes(again));
    assert_eq!(told_again["brew.message.duplicate"], "true");
    assert!(told["messaging.kafka.offset"] < told_again["messaging.kafka.offset"]);
    assert!(!spans.iter().any(|span| span.parent_span_id == again.span_context.span_id()), "no effect");

    let statement = named(&spans, "INSERT reservations");
    assert_eq!(statement[0].parent_span_id, first.span_context.span_id());
    assert_eq!(statement[0].span_kind, SpanKind::Client);
    assert_eq!(attributes(&statement[0])["db.query.summary"], "INSERT reservations");

    let create = named(&spans, &format!("create {answers}"));
    let [create] = create.as_slice() else { panic!("{create:#?}") };
    assert_eq!(
        (create.parent_span_id, &create.span_kind),
        (first.span_context.span_id(), &SpanKind::Producer)
    );
    assert_eq!(attributes(create)["messaging.message.conversation_id"], "order-1");
    let send = named(&spans, &format!("send {answers}"));
    let [send] = send.as_slice() else { panic!("{send:#?}") };
    assert_eq!((send.parent_span_id, &send.span_kind), (create.span_context.span_id(), &SpanKind::Client));
    assert!(send.links.iter().any(|link| link.span_context.span_id() == create.span_context.span_id()));
    let told = attributes(send);
    assert_eq!(told["brew.outbox.attempt"], "1");
    assert!(told.contains_key("messaging.kafka.offset") && told.contains_key("brew.outbox.wait_ms"));
    assert!(
        !spans.iter().any(|span| attributes(span).contains_key("error.type")),
        "success has no error.type"
    );

    // Row and record carry the create span's context, byte for byte.
    let context = &create.span_context;
    let parent = format!("00-{}-{}-01", context.trace_id(), context.span_id());
    let row = traceparent_of_the_row(&shelf).await;
    let records = testkit::read(&answers).await;
    assert_eq!(
        (row.as_str(), records[0].header(header::TRACEPARENT)),
        (parent.as_str(), Some(parent.as_str()))
    );
    assert_eq!(records[0].header(header::TRACESTATE), Some("shop=1"));
    spans.iter().for_each(in_the_docs);
}

async fn traceparent_of_the_row(shelf: &Shelf) -> String {
    let client = shelf.database.client().await;
    client.query_one("select headers->>'traceparent' from outbox", &[]).await.unwrap().get(0)
}

fn process_says(told: &BTreeMap<&str, String>, topic: &str, order: &Order) {
    for (key, value) in [
        ("messaging.system", "kafka"),
        ("messaging.operation.name", "process"),
        ("messaging.operation.type", "process"),
        ("messaging.consumer.group.name", "inventory-service"),
        ("messaging.destination.name", topic),
        ("messaging.message.id", &order.headers[header::EVENT_ID]),
        ("messaging.kafka.message.key", "order-1"),
        ("brew.message.duplicate", "false"),
    ] {
        assert_eq!(told.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[tokio::test]
async fn a_missing_or_malformed_context_makes_a_root_and_the_event_is_applied() {
    LazyLock::force(&SPANS);
    let shelf = Shelf::new().await;
    let mut without = order(1, &[("latte", 1)]);
    without.headers.remove(header::TRACEPARENT);
    let malformed = [
        "",
        "seven",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-zz",
    ];
    let number = |at: usize| i64::try_from(at).unwrap() + 2;
    let of = |(at, text): (usize, &&str)| order(number(at), &[("latte", 1)]).with(header::TRACEPARENT, text);
    let orders: Vec<Order> = [without].into_iter().chain(malformed.iter().enumerate().map(of)).collect();
    shelf.send(&orders).await;
    assert_eq!(shelf.consume("a").await, (orders.len() as u64, 0, 0));
    let mut traces = Vec::new();
    for order in &orders {
        let parent = order.headers.get(header::TRACEPARENT);
        let spans = processed(order);
        let [span] = spans.as_slice() else { panic!("{parent:?}: {spans:#?}") };
        assert_eq!(span.parent_span_id, SpanId::INVALID, "{parent:?}");
        assert!(span.links.is_empty(), "{parent:?}");
        traces.push(span.span_context.trace_id());
    }
    traces.sort_by_key(|trace| trace.to_bytes());
    traces.dedup();
    assert_eq!(traces.len(), orders.len(), "a trace each");
}

#[tokio::test]
async fn what_is_not_sampled_stays_so_through_the_outbox() {
    LazyLock::force(&SPANS);
    let shelf = Shelf::new().await;
    let (order, created) = traced(1, "00");
    shelf.send(&[order]).await;
    assert_eq!(shelf.consume("a").await, (1, 0, 0));
    assert!(of_trace(created.trace).is_empty());
    let row = traceparent_of_the_row(&shelf).await;
    assert!(row.starts_with(&format!("00-{}-", created.trace)) && row.ends_with("-00"), "{row}");
}

#[tokio::test]
async fn a_dead_letter_is_in_its_orders_trace() {
    LazyLock::force(&SPANS);
    let shelf = Shelf::new().await;
    let (order, created) = traced(1, "01");
    shelf.send(&[Order { payload: b"{".to_vec(), ..order }]).await;
    assert_eq!(shelf.consume("a").await, (0, 0, 1));
    let spans = of_trace(created.trace);
    let [letter] = spans.as_slice() else { panic!("{spans:#?}") };
    assert_eq!(letter.name, format!("send {}.inventory-service.dlq", shelf.topic));
    assert_eq!((letter.parent_span_id, &letter.span_kind), (created.span, &SpanKind::Client));
    in_the_docs(letter);
}

#[tokio::test]
async fn nothing_but_work_for_somebody_begins_a_trace() {
    LazyLock::force(&SPANS);
    let shelf = Shelf::new().await;
    // Joins, waits, finds nothing, and looks into an empty outbox.
    assert_eq!(shelf.consume("a").await, (0, 0, 0));
    testkit::drain(&shelf.database.url, &testkit::kafka()).await;
    for span in SPANS.get_finished_spans().unwrap() {
        if span.parent_span_id == SpanId::INVALID {
            let begins = matches!(span.span_kind, SpanKind::Server | SpanKind::Consumer);
            assert!(begins, "`{}` is a root: {span:#?}", span.name);
        }
    }
}

/// Fails unless docs/telemetry.md has the span.
fn in_the_docs(span: &SpanData) {
    let attributes = attributes(span);
    let operation = attributes.get("messaging.operation.name").map(String::as_str);
    let keys: Vec<&str> = attributes.keys().copied().collect();
    testkit::span_in_docs(&span.name, operation, &keys);
}
