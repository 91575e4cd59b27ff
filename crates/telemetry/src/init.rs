//! Start and end of logging and tracing.

use std::{env, io::IsTerminal};

use opentelemetry::{global, trace::TracerProvider};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// Why logging and tracing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `OTEL_*` variables that make no exporter.
    #[error("the OTLP exporter cannot be made")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
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

/// Starts logs on standard error (JSON, or plain text on a terminal, filtered by `RUST_LOG`) and traces over OTLP
/// if `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. Needs a tokio runtime.
///
/// # Errors
/// When an environment variable makes no sense, or on a second call in one process.
pub fn init(service: &'static str) -> Result<Guard, Error> {
    global::set_text_map_propagator(TraceContextPropagator::new());
    let resource = Resource::builder().with_service_name(service).build();
    let mut provider = SdkTracerProvider::builder().with_resource(resource);
    if ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
        .iter()
        .any(|name| env::var_os(name).is_some())
    {
        let exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic().build()?;
        provider = provider.with_batch_exporter(exporter);
    }
    let provider = provider.build();
    let tracer = provider.tracer(service);
    global::set_tracer_provider(provider.clone());

    let filter = match env::var("RUST_LOG") {
        Ok(text) => EnvFilter::try_new(text)?,
        Err(_) => EnvFilter::new("info,sqlx=warn,sea_orm=warn,sea_orm_migration=warn"),
    };
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let logs = if std::io::stderr().is_terminal() { logs.boxed() } else { logs.json().boxed() };
    tracing_subscriber::registry()
        .with(filter)
        .with(logs)
        .with(tracing_opentelemetry::layer().with_tracer(tracer))
        .try_init()?;
    Ok(Guard(provider))
}
