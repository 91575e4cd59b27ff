//! gRPC and HTTP: trace context in and out of headers, a span and a measurement for each call.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll},
    time::Instant,
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use opentelemetry::{KeyValue, metrics::Histogram};
use tower_layer::Layer;
use tower_service::Service;
use tracing::{Instrument, Span, field::Empty};

use crate::{catalogue, context, metrics, spans};

/// The response header in which a caller finds the trace's id, if the trace is sampled.
pub const TRACE_ID: &str = "trace-id";

static CALLS: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::seconds(&catalogue::RPC_SERVER));

/// A span and a measurement for each gRPC call of a server, in the trace of the caller if it has one; health checks and
/// reflection have none.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrpcLayer;

impl<S> Layer<S> for GrpcLayer {
    type Service = GrpcService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GrpcService { inner }
    }
}

/// What [`GrpcLayer`] makes of a service.
#[derive(Debug, Clone)]
pub struct GrpcService<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for GrpcService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let method = method(&request);
        if method.starts_with("grpc.") {
            return Box::pin(self.inner.call(request));
        }
        let span = rpc("server", &method);
        context::set_parent(&span, &carrier(request.headers()));
        let called = span.in_scope(|| self.inner.call(request));
        let began = Instant::now();
        let ended = span.clone();
        let answer = async move {
            let mut response = called.await?;
            let code = status(response.headers());
            ended.record("rpc.response.status_code", code);
            // A caller's own mistake is no failure of the server.
            if matches!(
                code,
                "UNKNOWN" | "DEADLINE_EXCEEDED" | "UNIMPLEMENTED" | "INTERNAL" | "UNAVAILABLE" | "DATA_LOSS"
            ) {
                spans::failed(&ended, code);
            }
            let labels =
                [KeyValue::new("rpc_method", method), KeyValue::new("rpc_response_status_code", code)];
            CALLS.record(began.elapsed().as_secs_f64(), &labels);
            if let Some(id) = context::sent_trace_id().and_then(|id| HeaderValue::from_str(&id).ok()) {
                response.headers_mut().insert(HeaderName::from_static(TRACE_ID), id);
            }
            Ok(response)
        };
        Box::pin(answer.instrument(span))
    }
}

/// A client's channel with a span for each call, whose context goes along; as the channel is where spans are sent
/// nowhere.
#[derive(Debug, Clone)]
pub struct Traced<S>(pub S);

impl<S, B, R> Service<Request<B>> for Traced<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if !spans::on() {
            return Box::pin(self.0.call(request));
        }
        let span = rpc("client", &method(&request));
        for (name, value) in context::of(&span) {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                request.headers_mut().insert(name, value);
            }
        }
        let called = span.in_scope(|| self.0.call(request));
        let ended = span.clone();
        let answer = async move {
            let response = called.await.inspect_err(|_| spans::failed(&ended, "transport"))?;
            let code = status(response.headers());
            ended.record("rpc.response.status_code", code);
            if code != "OK" {
                spans::failed(&ended, code);
            }
            Ok(response)
        };
        Box::pin(answer.instrument(span))
    }
}

/// `package.Service/Method`.
fn method<B>(request: &Request<B>) -> String {
    request.uri().path().trim_start_matches('/').to_owned()
}

fn rpc(kind: &'static str, method: &str) -> Span {
    tracing::info_span!(
        target: spans::TARGET,
        "rpc",
        otel.name = method,
        otel.kind = kind,
        otel.status_code = Empty,
        error.type = Empty,
        rpc.system.name = "grpc",
        rpc.method = method,
        rpc.response.status_code = Empty,
        brew.order.id = Empty,
    )
}

/// The code of an answer that has ended already, as those do that fail; others are well so far.
fn status(headers: &HeaderMap) -> &'static str {
    const CODES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    let code = headers.get("grpc-status").and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    CODES.get(code.unwrap_or(0)).copied().unwrap_or("UNKNOWN")
}

/// The trace context in `headers`.
#[must_use]
pub fn carrier(headers: &HeaderMap) -> BTreeMap<String, String> {
    context::NAMES
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), headers.get(name)?.to_str().ok()?.to_owned())))
        .collect()
}

/// Headers that carry the context of `span`; none where spans are sent nowhere, since nobody would find the parent.
#[must_use]
pub fn headers(span: &Span) -> Vec<(String, String)> {
    if spans::on() { context::of(span).into_iter().collect() } else { Vec::new() }
}

/// A span for a call of somebody else over HTTP. `template` is the path without ids.
#[must_use]
pub fn http_call(method: &'static str, template: &str, host: &str) -> Span {
    if !spans::on() {
        return Span::none();
    }
    let span = http("client", method, template);
    span.record("url.template", template);
    span.record("server.address", host);
    span
}

/// A span for a call that this service answers over HTTP, in the trace of its caller. `route` is the path without ids.
#[must_use]
pub fn http_served(method: &str, route: &str, headers: &HeaderMap) -> Span {
    let span = http("server", method, route);
    span.record("http.route", route);
    span.record("url.scheme", "http");
    context::set_parent(&span, &carrier(headers));
    span
}

fn http(kind: &'static str, method: &str, path: &str) -> Span {
    tracing::info_span!(
        target: spans::TARGET,
        "http",
        otel.name = format!("{method} {path}"),
        otel.kind = kind,
        otel.status_code = Empty,
        error.type = Empty,
        http.request.method = method,
        http.response.status_code = Empty,
        http.route = Empty,
        server.address = Empty,
        url.scheme = Empty,
        url.template = Empty,
    )
}

/// What an HTTP call came to. For a server only 5xx is a failure.
pub fn http_ended(span: &Span, status: u16, served: bool) {
    span.record("http.response.status_code", i64::from(status));
    if status >= 500 || (!served && status >= 400) {
        spans::failed(span, &status.to_string());
    }
}
