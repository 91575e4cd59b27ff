//! Instruments by their place in the [catalogue](crate::catalogue), and what Prometheus reads.

use opentelemetry::{
    global,
    metrics::{Counter, Gauge, Histogram},
};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider};
use prometheus::{Registry, TextEncoder, process_collector::ProcessCollector};

use crate::catalogue::Metric;

/// Seconds: from half a millisecond, below which nothing here is, to two minutes.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];
const ROWS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0, 2500.0, 10_000.0];

/// A counter. Made before [`init`](crate::init), it counts nothing.
#[must_use]
pub fn counter(metric: &Metric) -> Counter<u64> {
    global::meter("brew").u64_counter(metric.name).with_description(metric.help).build()
}

/// A gauge. Made before [`init`](crate::init), it tells nothing.
#[must_use]
pub fn gauge(metric: &Metric) -> Gauge<f64> {
    global::meter("brew").f64_gauge(metric.name).with_description(metric.help).build()
}

/// A histogram of seconds. Made before [`init`](crate::init), it records nothing.
#[must_use]
pub fn seconds(metric: &Metric) -> Histogram<f64> {
    histogram(metric, SECONDS.to_vec())
}

/// A histogram of numbers of rows. Made before [`init`](crate::init), it records nothing.
#[must_use]
pub fn rows(metric: &Metric) -> Histogram<f64> {
    histogram(metric, ROWS.to_vec())
}

fn histogram(metric: &Metric, boundaries: Vec<f64>) -> Histogram<f64> {
    let meter = global::meter("brew");
    meter.f64_histogram(metric.name).with_description(metric.help).with_boundaries(boundaries).build()
}

/// All metrics of this process, in Prometheus' text format.
///
/// # Errors
/// When two metrics of one name do not fit together.
pub fn text() -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&prometheus::default_registry().gather())
}

/// Makes the meter provider; all metrics are read from the process's one registry.
pub(crate) fn provider(resource: Resource) -> Result<SdkMeterProvider, crate::Error> {
    let registry: &Registry = prometheus::default_registry();
    // A second start in one process, as in tests, finds it there.
    let _twice = registry.register(Box::new(ProcessCollector::for_self()));
    // The names are Prometheus' own already.
    let exporter = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .without_units()
        .without_counter_suffixes()
        .scope_info_enabled(false)
        .build()?;
    Ok(SdkMeterProvider::builder().with_resource(resource).with_reader(exporter).build())
}
