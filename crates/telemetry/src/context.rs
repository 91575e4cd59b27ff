//! W3C trace context as a string map: the form in which it stands in an outbox row, a record's headers and
//! gRPC metadata.

use std::collections::{BTreeMap, HashMap};

use opentelemetry::{
    Context, global,
    propagation::Extractor,
    trace::{SpanContext, TraceContextExt},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// `traceparent` and, if there is one, `tracestate` of the current span; empty outside of a trace.
#[must_use]
pub fn current() -> BTreeMap<String, String> {
    of(&Span::current())
}

/// `traceparent` and, if there is one, `tracestate` of `span`.
#[must_use]
pub fn of(span: &Span) -> BTreeMap<String, String> {
    inject(&span.context())
}

/// The headers of a trace context, in HTTP, gRPC, Kafka and the outbox.
pub(crate) const NAMES: [&str; 2] = ["traceparent", "tracestate"];

/// Makes `span` a child of the span that `carrier` names, and returns that one. A missing or malformed context leaves
/// `span` as it is: a root, or a child of the current span.
pub fn set_parent(span: &Span, carrier: &BTreeMap<String, String>) -> Option<SpanContext> {
    let context = extract(carrier);
    let parent = context.span().span_context().clone();
    if span.is_none() || !parent.is_valid() {
        return None;
    }
    match span.set_parent(context) {
        Ok(()) => Some(parent),
        Err(error) => {
            tracing::warn!(%error, "span keeps its own parent");
            None
        }
    }
}

/// The context that `carrier` names; an invalid one if it names none.
pub(crate) fn extract(carrier: &BTreeMap<String, String>) -> Context {
    // Not into the current context: a malformed carrier must not leave the caller's span in its place.
    let empty = Context::new();
    global::get_text_map_propagator(|propagator| propagator.extract_with_context(&empty, &Headers(carrier)))
}

/// Lends the headers to the library, which takes a map of its own kind only.
struct Headers<'a>(&'a BTreeMap<String, String>);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

fn inject(context: &Context) -> BTreeMap<String, String> {
    let mut carrier = HashMap::new();
    global::get_text_map_propagator(|propagator| propagator.inject_context(context, &mut carrier));
    // The propagator writes an empty tracestate for a trace that has none.
    carrier.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The current trace's id in hexadecimal, if the trace is sent somewhere.
#[must_use]
pub fn sent_trace_id() -> Option<String> {
    let context = Span::current().context();
    let span = context.span();
    span.span_context().is_sampled().then(|| span.span_context().trace_id().to_string())
}
