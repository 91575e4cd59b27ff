//! W3C trace context as a string map: the form in which it stands in an outbox row, a record's headers and
//! gRPC metadata.

use std::collections::{BTreeMap, HashMap};

use opentelemetry::{global, trace::TraceContextExt};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// `traceparent` and, if there is one, `tracestate` of the current span; empty outside of a trace.
#[must_use]
pub fn current() -> BTreeMap<String, String> {
    let mut carrier = HashMap::new();
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut carrier));
    // The propagator writes an empty tracestate for a trace that has none.
    carrier.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Makes `span` a child of the span that `carrier` names. A missing or malformed context leaves it a root.
pub fn set_parent(span: &Span, carrier: &BTreeMap<String, String>) {
    let carrier: HashMap<String, String> = carrier.clone().into_iter().collect();
    let context = global::get_text_map_propagator(|propagator| propagator.extract(&carrier));
    if context.span().span_context().is_valid()
        && let Err(error) = span.set_parent(context)
    {
        tracing::debug!(%error, "span keeps its own parent");
    }
}

/// The current trace's id in hexadecimal, if there is a trace.
#[must_use]
pub fn trace_id() -> Option<String> {
    let context = Span::current().context();
    let span = context.span();
    let id = span.span_context().trace_id();
    span.span_context().is_valid().then(|| id.to_string())
}
