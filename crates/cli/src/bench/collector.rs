//! Where the spans of a measured service go: taken over OTLP as by a collector, counted and forgotten.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use anyhow::Context;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
    trace_service_server::{TraceService, TraceServiceServer},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, transport::Server, transport::server::TcpIncoming};

#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

#[tonic::async_trait]
impl TraceService for Count {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.get_ref().resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let spans: usize = scopes.map(|scope| scope.spans.len()).sum();
        self.0.fetch_add(spans as u64, Relaxed);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A running collector.
pub(crate) struct Collector {
    /// For `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub(crate) url: String,
    count: Count,
    stop: CancellationToken,
    running: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Collector {
    /// Starts one on a free port of the loopback.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("bind a collector")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (count, stop) = (Count::default(), CancellationToken::new());
        let service = TraceServiceServer::new(count.clone());
        let running = tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(TcpIncoming::from(listener), stop.clone().cancelled_owned()),
        );
        Ok(Self { url, count, stop, running })
    }

    /// Ends it, after those that send to it, and returns how many spans came.
    pub(crate) async fn close(self) -> anyhow::Result<u64> {
        self.stop.cancel();
        self.running.await?.context("the collector")?;
        Ok(self.count.0.load(Relaxed))
    }
}
