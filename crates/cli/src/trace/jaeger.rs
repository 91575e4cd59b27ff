//! Jaeger's HTTP query API: the JSON that its own web page reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// Services whose spans say whose order they are about.
const SERVICES: [&str; 4] = ["order-service", "outbox-publisher", "inventory-service", "payment-service"];

/// How many traces a search may find; one order has one.
const LIMIT: &str = "20";

const TIMEOUT: Duration = Duration::from_secs(10);

/// Where Jaeger is.
#[derive(clap::Args, Clone)]
pub(crate) struct Jaeger {
    /// Where Jaeger's web page and query API are.
    #[arg(long = "jaeger", env = "JAEGER_URL", default_value = "http://127.0.0.1:16686")]
    pub(crate) url: String,
    /// Where a person opens its web page, if that is not there: from inside of a network of containers.
    #[arg(long = "jaeger-link", env = "JAEGER_LINK")]
    pub(crate) page: Option<String>,
}

/// One trace, its spans by when they began.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) id: String,
    pub(crate) spans: Vec<Span>,
}

#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) service: String,
    pub(crate) name: String,
    /// Since 1970.
    pub(crate) start_us: u64,
    pub(crate) took_us: u64,
    pub(crate) tags: BTreeMap<String, Json>,
}

impl Trace {
    /// The spans of each parent, by when they began.
    pub(crate) fn children(&self) -> BTreeMap<&str, Vec<&Span>> {
        let mut children: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
        for span in &self.spans {
            if let Some(parent) = &span.parent {
                children.entry(parent).or_default().push(span);
            }
        }
        children
    }
}

impl Span {
    pub(crate) fn text(&self, tag: &str) -> Option<&str> {
        self.tags.get(tag)?.as_str()
    }

    pub(crate) fn end_us(&self) -> u64 {
        self.start_us + self.took_us
    }

    /// Of a database.
    pub(crate) fn is_statement(&self) -> bool {
        self.tags.contains_key("db.system.name")
    }

    /// `create brew.orders.v1` is of `create`.
    pub(crate) fn is(&self, operation: &str) -> bool {
        self.text("messaging.operation.name") == Some(operation)
    }

    /// The event, by its UUID.
    pub(crate) fn event(&self) -> Option<&str> {
        self.text("messaging.message.id")
    }
}

impl Jaeger {
    /// The one that JAEGER_URL names.
    pub(crate) fn of_environment() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Some(Self { url: variable("JAEGER_URL")?, page: variable("JAEGER_LINK") })
    }

    /// The page of a trace.
    pub(crate) fn link(&self, trace_id: &str) -> String {
        let page = self.page.as_ref().filter(|page| !page.is_empty()).unwrap_or(&self.url);
        format!("{}/trace/{trace_id}", page.trim_end_matches('/'))
    }

    /// Every trace, begun after `since`, in which a service has said that it is about this order; more than one is a
    /// fault.
    pub(crate) async fn traces_of(&self, order_id: &str, since: SystemTime) -> anyhow::Result<Vec<Trace>> {
        let start = since.duration_since(SystemTime::UNIX_EPOCH)?.as_micros().to_string();
        let client = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        let tags = json!({"messaging.kafka.message.key": order_id}).to_string();
        let mut seen = BTreeSet::new();
        let mut traces = Vec::new();
        for service in SERVICES {
            let query = [("service", service), ("tags", &tags), ("limit", LIMIT), ("start", &start)];
            let url = reqwest::Url::parse_with_params(
                &format!("{}/api/traces", self.url.trim_end_matches('/')),
                &query,
            )
            .with_context(|| format!("`{}` is no address of Jaeger (--jaeger)", self.url))?;
            let answer = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
            let answer = answer
                .with_context(|| format!("Jaeger does not answer at {} (--jaeger, JAEGER_URL)", self.url))?;
            let found: Answer = answer.json().await.context("read Jaeger's answer")?;
            let new = found.data.into_iter().filter(|trace| seen.insert(trace.trace_id.clone()));
            traces.extend(new.map(Trace::from));
        }
        Ok(traces)
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<AsTrace>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AsTrace {
    #[serde(rename = "traceID")]
    trace_id: String,
    spans: Vec<AsSpan>,
    processes: BTreeMap<String, Process>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AsSpan {
    #[serde(rename = "spanID")]
    span_id: String,
    operation_name: String,
    references: Vec<Reference>,
    start_time: u64,
    duration: u64,
    tags: Vec<Tag>,
    #[serde(rename = "processID")]
    process_id: String,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

#[derive(Deserialize)]
struct Tag {
    key: String,
    value: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    service_name: String,
}

impl From<AsTrace> for Trace {
    fn from(trace: AsTrace) -> Self {
        let AsTrace { trace_id, spans, processes } = trace;
        let mut spans: Vec<Span> = spans
            .into_iter()
            .map(|span| Span {
                id: span.span_id,
                // Jaeger tells the parent first. One that is linked to as well comes once, as FOLLOWS_FROM.
                parent: span
                    .references
                    .into_iter()
                    .find(|reference| reference.trace_id == trace_id)
                    .map(|reference| reference.span_id),
                service: processes.get(&span.process_id).map_or_else(String::new, |p| p.service_name.clone()),
                name: span.operation_name,
                start_us: span.start_time,
                took_us: span.duration,
                tags: span.tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
            })
            .collect();
        spans.sort_by(|a, b| (a.start_us, &a.id).cmp(&(b.start_us, &b.id)));
        Self { id: trace_id, spans }
    }
}
