//! Orders in a real Jaeger, if there is one.

use std::{collections::BTreeSet, process::Stdio, time::Instant};

use proto::order::v1::{OrderLine, PlaceOrderRequest, order_service_client::OrderServiceClient};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::Lab;

/// A lab whose services and customers send their spans to Jaeger.
struct Traced<'a> {
    lab: &'a Lab,
    jaeger: String,
    otlp: String,
    began: Instant,
}

pub(crate) async fn in_jaeger(lab: &Lab) {
    let variable = |name| std::env::var(name).ok();
    let (Some(jaeger), Some(otlp)) = (variable("BREW_TEST_JAEGER"), variable("BREW_TEST_OTLP")) else {
        // `brew local run --jaeger` has said why.
        return;
    };
    let traced = Traced { lab, jaeger, otlp, began: Instant::now() };
    the_demo_prints_a_whole_trace(&traced).await;
    // Order ids begin anew with each database.
    let traced = Traced { began: Instant::now(), ..traced };
    after_a_crash_and_a_replay_it_is_one_trace(&traced).await;
    let traced = Traced { began: Instant::now(), ..traced };
    the_demo_passes_on_a_shop_that_is_open(&traced).await;
    placed_while_kafka_is_away_it_is_one_trace(&traced).await;
}

impl Traced<'_> {
    fn command(&self, arguments: &str) -> Command {
        let mut command = self.lab.command(arguments);
        command.env("JAEGER_URL", &self.jaeger).env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.otlp);
        command
    }

    async fn brew(&self, arguments: &str) -> String {
        succeeds(&mut self.command(arguments)).await
    }

    /// The one trace of an order, from when this lab began.
    async fn trace(&self, order_id: &str) -> Vec<Value> {
        let since = self.began.elapsed().as_secs() + 1;
        let said = self.brew(&format!("trace {order_id} --check --json --since {since}s")).await;
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["traces"].as_array().unwrap().len(), 1);
        said["traces"][0]["spans"].as_array().unwrap().clone()
    }

    /// A whole shop, and the address of order-service in it.
    async fn shop(&self, settings: &[(&str, &str)]) -> (Child, String) {
        let mut command = self.command("shop");
        command.envs(settings.iter().copied());
        let mut shop = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(shop.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("a line of the shop");
        (shop, line.trim_start_matches("export BREW_ORDER_SERVICE=").to_owned())
    }
}

async fn close(mut shop: Child) {
    let pid = nix::unistd::Pid::from_raw(shop.id().unwrap().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(shop.wait().await.unwrap().success());
}

async fn succeeds(command: &mut Command) -> String {
    let output = command.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

async fn the_demo_prints_a_whole_trace(traced: &Traced<'_>) {
    let said = traced.brew("trace-demo latte").await;
    assert!(said.contains("waits in the outbox") && said.contains("waits in Kafka"), "{said}");
    assert!(said.contains("order-1: ") && said.contains(", 6 services, "), "{said}");
    assert!(
        said.trim_end().lines().last().unwrap().starts_with(&format!("{}/trace/", traced.jaeger)),
        "{said}"
    );
}

/// A publisher dies between ack and mark, and a consumer reads all from the begin again, before the shop opens and
/// brings the orders to their end.
async fn after_a_crash_and_a_replay_it_is_one_trace(traced: &Traced<'_>) {
    for step in ["local up", "lab db-init", "lab topic-create", "lab run-service --count 3"] {
        traced.brew(step).await;
    }
    traced.brew("lab chaos-kill-publisher --batch-size 3").await;
    traced.brew("lab run-publisher").await;
    traced.brew("lab run-consumer").await;
    let replay = succeeds(traced.command("lab run-consumer").env("BREW__CONSUMER__GROUP", "replay")).await;
    assert!(replay.ends_with("processed=6 inserted=0 skipped=6\n"), "{replay}");
    let (shop, address) = traced.shop(&[]).await;
    assert_eq!(placed_under_a_malformed_context(&address).await, "order-4");
    for order_id in ["order-1", "order-2", "order-3", "order-4"] {
        let watch = format!("order watch {order_id} --order-service {address}");
        let said = succeeds(&mut traced.lab.command(&watch)).await;
        assert!(said.contains("completed"), "{said}");
    }
    close(shop).await;
    for order_id in ["order-1", "order-2", "order-3"] {
        judge(order_id, &traced.trace(order_id).await);
    }
    traced.trace("order-4").await;
    traced.brew("local reset").await;
}

/// As in containers: the demo knows addresses only.
async fn the_demo_passes_on_a_shop_that_is_open(traced: &Traced<'_>) {
    for step in ["local up", "lab db-init", "topics"] {
        traced.brew(step).await;
    }
    let (shop, address) = traced.shop(&[]).await;
    let link = "http://jaeger.example:16686";
    let mut demo = traced.command("demo");
    let said = succeeds(demo.env("BREW_ORDER_SERVICE", &address).env("JAEGER_LINK", link)).await;
    assert!(said.contains("PASS: every order came to its end"), "{said}");
    assert!(said.contains("verify: all hold") && said.contains("one trace, one root"), "{said}");
    assert_eq!(said.matches(&format!("{link}/trace/")).count(), 7, "one waterfall, six orders: {said}");
    close(shop).await;
    traced.brew("local reset").await;
}

/// On a broker of its own, which dies before the order and comes back after it. The services send their spans only at
/// their end, so that those are there says also that SIGTERM loses none.
async fn placed_while_kafka_is_away_it_is_one_trace(traced: &Traced<'_>) {
    let mut broker = testkit::Broker::start(None).await;
    let lab = Lab { brokers: broker.options().brokers, ..Lab::new("outage") };
    let (jaeger, otlp) = (traced.jaeger.clone(), traced.otlp.clone());
    let traced = Traced { lab: &lab, jaeger, otlp, began: Instant::now() };
    for step in ["local up", "lab db-init", "topics"] {
        traced.brew(step).await;
    }
    let (shop, address) = traced.shop(&[("OTEL_BSP_SCHEDULE_DELAY", "3600000")]).await;
    broker.kill().await;
    let placed = traced.brew(&format!("order place latte --order-service {address}")).await;
    broker.restart().await;
    let watch = format!("order watch {} --order-service {address}", placed.trim());
    let said = succeeds(&mut lab.command(&watch)).await;
    assert!(said.contains("completed"), "{said}");
    close(shop).await;
    let spans = traced.trace(placed.trim()).await;
    let roots: Vec<&Value> = spans.iter().filter(|span| span["parent_id"].is_null()).collect();
    assert_eq!((roots.len(), &roots[0]["service"]), (1, &Value::from("brew")));
    traced.brew("local reset").await;
}

/// The id of an order whose caller sends a trace context that cannot be read.
async fn placed_under_a_malformed_context(address: &str) -> String {
    let mut client = OrderServiceClient::connect(address.to_owned()).await.unwrap();
    let mut request = tonic::Request::new(PlaceOrderRequest {
        customer: "somebody".to_owned(),
        lines: vec![OrderLine { sku: "latte".to_owned(), quantity: 1 }],
        idempotency_key: "malformed-context-1".to_owned(),
        payment_token: "tok_good".to_owned(),
    });
    request.metadata_mut().insert("traceparent", "00-seven-seven-01".parse().unwrap());
    let placed = client.place_order(request).await.unwrap();
    let trace_id = placed.metadata().get("trace-id").expect("the header of a call that is traced");
    assert_eq!(trace_id.len(), 32, "{trace_id:?}");
    placed.into_inner().order.unwrap().order_id
}

/// `--check` has found nothing; what it does not look at.
fn judge(order_id: &str, spans: &[Value]) {
    let services: BTreeSet<&str> = spans.iter().map(|span| span["service"].as_str().unwrap()).collect();
    let all =
        ["inventory-service", "order-service", "outbox-publisher", "payment-gateway", "payment-service"];
    assert!(all.iter().all(|service| services.contains(service)), "{services:?}");
    let duplicates: Vec<&Value> =
        spans.iter().filter(|span| span["tags"]["brew.message.duplicate"] == true).collect();
    // One more by the crash, and two by the replay.
    let in_inventory = duplicates.iter().filter(|span| span["service"] == "inventory-service").count();
    assert_eq!(in_inventory, 3, "{order_id}: {duplicates:#?}");
    for span in spans {
        let (tags, name) = (&span["tags"], span["name"].as_str().unwrap());
        assert!(!name.contains(order_id), "{name}: a name has no ids");
        if span["parent_id"].is_string() && duplicates.iter().any(|of| of["span_id"] == span["parent_id"]) {
            let table = tags["db.collection.name"].as_str();
            assert_eq!(table, Some("processed_outbox_ids"), "a duplicate has no effect: {span:#}");
        }
        in_the_docs(span);
        let tags = tags.as_object().unwrap();
        for key in RETIRED {
            assert!(!tags.contains_key(key), "{name}: {key}");
        }
        let failed = tags.contains_key("error.type");
        assert_eq!(
            failed,
            tags.contains_key("error"),
            "what fails says why, and nothing else does: {span:#}"
        );
        // On a busy machine, a call to the provider may take too long; it is made again.
        assert!(!failed || tags.contains_key("url.template"), "{span:#}");
    }
}

/// Fails unless docs/telemetry.md has the span.
fn in_the_docs(span: &Value) {
    let tags = span["tags"].as_object().unwrap();
    // What the library and Jaeger add.
    let added =
        |key: &str| key.starts_with("otel.") || ["span.kind", "w3c.tracestate", "error"].contains(&key);
    let keys: Vec<&str> = tags.keys().map(String::as_str).filter(|key| !added(key)).collect();
    let operation = tags.get("messaging.operation.name").and_then(Value::as_str);
    testkit::span_in_docs(span["name"].as_str().unwrap(), operation, &keys);
}

/// Attributes that the semantic conventions have taken back.
const RETIRED: [&str; 12] = [
    "messaging.operation",
    "messaging.kafka.consumer.group",
    "messaging.kafka.destination.partition",
    "messaging.kafka.message.offset",
    "messaging.destination_kind",
    "rpc.system",
    "rpc.service",
    "rpc.grpc.status_code",
    "db.system",
    "db.statement",
    "http.method",
    "http.status_code",
];
