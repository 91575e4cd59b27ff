//! Start and end of logging, tracing and metrics.

use std::{env, io::IsTerminal};

use opentelemetry::{
    KeyValue, global,
    trace::{TraceContextExt, TracerProvider},
};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{self, Sampler, SdkTracerProvider},
};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, filter::Targets, layer::SubscriberExt, registry::LookupSpan, util::SubscriberInitExt,
};
use uuid::Uuid;

use crate::{catalogue, metrics, spans};

/// Of the semantic conventions that names and attributes follow.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";

/// Why logging, tracing or metrics cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `OTEL_*` variables that make no exporter.
    #[error("the OTLP exporter cannot be made")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// A protocol that there is not.
    #[error("OTEL_EXPORTER_OTLP_PROTOCOL={0} is neither `grpc` nor `http/protobuf`")]
    Protocol(String),
    /// Metrics cannot be read.
    #[error("metrics cannot be set up")]
    Metrics(#[from] opentelemetry_sdk::error::OTelSdkError),
    /// `RUST_LOG` cannot be read.
    #[error("RUST_LOG is no log filter")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// A second start in one process.
    #[error("logging was started before")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Keeps tracing alive; flushed by [`Guard::finish`].
#[must_use = "spans that are not flushed are lost"]
pub struct Guard(SdkTracerProvider);

impl Guard {
    /// Sends the spans that are still here. Blocks (a few seconds at most, when the collector is away): call it
    /// last, off the runtime's worker threads.
    pub fn finish(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "not all spans were sent");
        }
    }
}

/// Starts logs on standard error (JSON with the trace's and the span's id, or plain text on a terminal, filtered by
/// `RUST_LOG`), metrics, and traces over OTLP if `OTEL_EXPORTER_OTLP_ENDPOINT` or the same for traces alone is set
/// (gRPC, or HTTP by `OTEL_EXPORTER_OTLP_PROTOCOL`). Without such an endpoint no trace is sampled, so that nobody looks
/// for parents that were never sent. Needs a tokio runtime.
///
/// # Errors
/// When an environment variable makes no sense, or on a second call in one process.
pub fn init(service: &'static str) -> Result<Guard, Error> {
    global::set_text_map_propagator(TraceContextPropagator::new());
    let resource = resource(service);
    global::set_meter_provider(metrics::provider(resource.clone())?);
    let build = [KeyValue::new("service", service), KeyValue::new("version", env!("CARGO_PKG_VERSION"))];
    metrics::gauge(&catalogue::BUILD_INFO).record(1.0, &build);

    let provider = provider(resource)?;
    let wanted = match env::var("RUST_LOG") {
        Ok(text) => EnvFilter::try_new(text)?,
        Err(_) => EnvFilter::new("info,sqlx=warn,sea_orm=warn,sea_orm_migration=warn"),
    };
    subscribe(wanted, &provider)?;
    Ok(Guard(provider))
}

/// Starts traces alone, as [`init`] does, for a program that logs nothing and whose metrics nobody scrapes.
///
/// # Errors
/// As [`init`].
pub fn init_traces(service: &'static str) -> Result<Guard, Error> {
    global::set_text_map_propagator(TraceContextPropagator::new());
    let provider = provider(resource(service))?;
    tracing_subscriber::registry().with(spans_of(&provider)).with(only_ours()).try_init()?;
    Ok(Guard(provider))
}

/// Starts logs and traces as [`init`] does, but gives each span to `exporter` as it ends, with nothing to flush; for
/// tests.
///
/// # Errors
/// On a second call in one process.
pub fn init_traces_to(
    exporter: impl trace::SpanExporter + 'static,
    service: &'static str,
) -> Result<(), Error> {
    global::set_text_map_propagator(TraceContextPropagator::new());
    let provider = SdkTracerProvider::builder()
        .with_resource(resource(service))
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_simple_exporter(exporter)
        .build();
    global::set_tracer_provider(provider.clone());
    spans::begin(provider.tracer("brew"));
    subscribe(EnvFilter::new("warn"), &provider)
}

/// One filter for logs and spans: with one of its own for each layer, the tracing layer lost the first span of a kind
/// (the tests of spans in inventory-service found it). Spans do not depend on which logs are `wanted`.
fn subscribe(wanted: EnvFilter, provider: &SdkTracerProvider) -> Result<(), Error> {
    let wanted = wanted.add_directive(format!("{}=info", spans::TARGET).parse()?);
    tracing_subscriber::registry().with(wanted).with(logs()).with(spans_of(provider)).try_init()?;
    Ok(())
}

fn provider(resource: Resource) -> Result<SdkTracerProvider, Error> {
    let provider = SdkTracerProvider::builder().with_resource(resource);
    let provider = match exporter()? {
        Some(exporter) => {
            // The sampler is the standard variables' own, parent-based unless they say otherwise.
            let provider = provider.with_batch_exporter(exporter).build();
            spans::begin(provider.tracer("brew"));
            provider
        }
        None => provider.with_sampler(Sampler::AlwaysOff).build(),
    };
    global::set_tracer_provider(provider.clone());
    Ok(provider)
}

/// Our spans, whichever logs are wanted.
fn spans_of<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("brew"))
        .with_location(false)
        .with_target(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        // What is logged within a span is an event of it, and does not decide whether it has failed.
        .with_error_events_to_status(false)
        .with_error_events_to_exceptions(false)
        .with_error_fields_to_exceptions(false)
}

/// Our spans alone, where nothing is logged.
fn only_ours() -> Targets {
    Targets::new().with_target(spans::TARGET, LevelFilter::INFO)
}

fn resource(service: &'static str) -> Resource {
    let attributes = [
        KeyValue::new("service.namespace", "brew"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
    ];
    Resource::builder().with_service_name(service).with_schema_url(attributes, SCHEMA_URL).build()
}

fn exporter() -> Result<Option<SpanExporter>, Error> {
    let names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    if !names.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(None);
    }
    let protocol = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    match protocol.as_deref() {
        None | Some("grpc") => Ok(Some(SpanExporter::builder().with_tonic().build()?)),
        Some("http/protobuf") => Ok(Some(SpanExporter::builder().with_http().build()?)),
        Some(other) => Err(Error::Protocol(other.to_owned())),
    }
}

fn logs<S>() -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    if std::io::stderr().is_terminal() {
        return tracing_subscriber::fmt::layer().with_writer(std::io::stderr).boxed();
    }
    let mut json = json_subscriber::layer()
        .with_writer(std::io::stderr)
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false);
    json.inner_layer_mut().add_dynamic_field("trace_id", |_, _| id(|context| context.trace_id().to_string()));
    json.inner_layer_mut().add_dynamic_field("span_id", |_, _| id(|context| context.span_id().to_string()));
    json.boxed()
}

/// Something of the current span, if it belongs to a trace.
fn id(of: impl Fn(&opentelemetry::trace::SpanContext) -> String) -> Option<String> {
    opentelemetry::Context::map_current(|context| {
        let span = context.span();
        let context = span.span_context();
        context.is_valid().then(|| of(context))
    })
}
