//! gRPC: request to command, order to message.

use std::{pin::Pin, sync::Arc, time::Duration};

use database::{Gate, Place};
use events::{OrderId, Sku};
use outbox::Wake;
use proto::order::v1::{
    self as pb, CancelOrderRequest, CancelOrderResponse, GetOrderRequest, GetOrderResponse,
    ListOrdersRequest, ListOrdersResponse, PlaceOrderRequest, PlaceOrderResponse, WatchOrderRequest,
    WatchOrderResponse, order_service_server::OrderService,
};
use sea_orm::DatabaseConnection;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    Error,
    app::{cancel_order, get_order, list_orders, place_order},
    domain::{Invalid, NewOrder, Order, OrderStatus, RequestedLine},
};

const DEFAULT_PAGE: i32 = 20;
const MAX_PAGE: i32 = 100;

/// The service's gRPC face.
pub(crate) struct Orders {
    pub(crate) db: DatabaseConnection,
    pub(crate) gate: Arc<Gate>,
    pub(crate) topic: String,
    pub(crate) answer_timeout: Duration,
    pub(crate) watch_interval: Duration,
    pub(crate) shutdown: CancellationToken,
    /// Told after each commit that appended an event.
    pub(crate) wake: Wake,
    /// One permit for each call that may be under way.
    pub(crate) room: Semaphore,
}

impl Orders {
    /// A call's place, or the word that there is none. More calls than the database answers in time would all wait
    /// until they fail, and then nothing at all is answered; so what is too much is turned away at once.
    async fn enter(&self) -> Result<(SemaphorePermit<'_>, Place), Status> {
        let room = self.room.try_acquire().map_err(|_| {
            Status::resource_exhausted(
                "too many calls are under way; nothing is stored, wait a little and try again with the same key",
            )
        })?;
        Ok((room, self.gate.enter().await.map_err(Error::from)?))
    }
}

#[tonic::async_trait]
impl OrderService for Orders {
    async fn place_order(
        &self,
        request: Request<PlaceOrderRequest>,
    ) -> Result<Response<PlaceOrderResponse>, Status> {
        let _place = self.enter().await?;
        let body = request.into_inner();
        let lines = body
            .lines
            .into_iter()
            .map(|line| RequestedLine { sku: Sku(line.sku), quantity: line.quantity })
            .collect();
        let new = NewOrder::parse(body.customer, lines, body.idempotency_key, body.payment_token)
            .map_err(Error::Invalid)?;
        let placed = place_order(&self.db, &self.topic, self.answer_timeout, new).await?;
        self.wake.wake();
        tracing::Span::current().record("brew.order.id", placed.order.saga.order_id.to_string());
        let order = Some(message(placed.order));
        Ok(Response::new(PlaceOrderResponse { order, replayed: placed.replayed }))
    }

    async fn get_order(
        &self,
        request: Request<GetOrderRequest>,
    ) -> Result<Response<GetOrderResponse>, Status> {
        let _place = self.enter().await?;
        let id = order_id(&request.into_inner().order_id)?;
        let order = get_order(&self.db, id).await?;
        Ok(Response::new(GetOrderResponse { order: Some(message(order)) }))
    }

    async fn list_orders(
        &self,
        request: Request<ListOrdersRequest>,
    ) -> Result<Response<ListOrdersResponse>, Status> {
        let _place = self.enter().await?;
        let body = request.into_inner();
        let size = match body.page_size {
            0 => DEFAULT_PAGE,
            size if (1..=MAX_PAGE).contains(&size) => size,
            size => return Err(invalid("page_size", format!("must be 0 to {MAX_PAGE}, not {size}"))),
        };
        if body.customer.contains('\0') {
            return Err(invalid("customer", "must not hold U+0000".to_owned()));
        }
        let customer = Some(body.customer.as_str()).filter(|customer| !customer.is_empty());
        let before = match body.page_token.as_str() {
            "" => None,
            token => Some(
                token
                    .parse::<OrderId>()
                    .map_err(|_| invalid("page_token", "must come from next_page_token".to_owned()))?,
            ),
        };
        let page = list_orders(&self.db, customer, before, size.unsigned_abs().into()).await?;
        Ok(Response::new(ListOrdersResponse {
            orders: page.orders.into_iter().map(message).collect(),
            next_page_token: page.next.map(|id| id.to_string()).unwrap_or_default(),
        }))
    }

    async fn cancel_order(
        &self,
        request: Request<CancelOrderRequest>,
    ) -> Result<Response<CancelOrderResponse>, Status> {
        let _place = self.enter().await?;
        let id = order_id(&request.into_inner().order_id)?;
        let order = cancel_order(&self.db, &self.topic, id).await?;
        self.wake.wake();
        Ok(Response::new(CancelOrderResponse { order: Some(message(order)) }))
    }

    type WatchOrderStream = Pin<Box<dyn Stream<Item = Result<WatchOrderResponse, Status>> + Send>>;

    async fn watch_order(
        &self,
        request: Request<WatchOrderRequest>,
    ) -> Result<Response<Self::WatchOrderStream>, Status> {
        let _place = self.enter().await?;
        let id = order_id(&request.into_inner().order_id)?;
        let first = get_order(&self.db, id).await?;
        let (changes, stream) = mpsc::channel(1);
        let pool = (self.db.clone(), Arc::clone(&self.gate));
        let watch = watch(pool, first, self.watch_interval, changes, self.shutdown.clone());
        tokio::spawn(watch);
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// Sends `order`, then each later version of it, until it is final, the caller goes away, or the service ends.
async fn watch(
    (db, gate): (DatabaseConnection, Arc<Gate>),
    order: Order,
    interval: Duration,
    changes: mpsc::Sender<Result<WatchOrderResponse, Status>>,
    shutdown: CancellationToken,
) {
    let (id, mut sent) = (order.saga.order_id, order.saga.version);
    let mut next = Some(Ok(order));
    loop {
        if let Some(change) = next.take() {
            let last = change.as_ref().is_ok_and(|order| order.saga.status.is_final());
            let change = change
                .map(|order| WatchOrderResponse { order: Some(message(order)) })
                .map_err(|error: Error| Status::from(error));
            let failed = change.is_err();
            if changes.send(change).await.is_err() || failed || last {
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = changes.closed() => return,
            () = shutdown.cancelled() => {
                // The caller is told to come back, rather than left to guess.
                let _gone = changes.send(Err(Status::unavailable("the service is ending"))).await;
                return;
            }
        }
        let looked = async {
            let _place = gate.enter().await?;
            get_order(&db, id).await
        };
        next = match looked.await {
            Ok(order) if order.saga.version == sent => None,
            Ok(order) => {
                sent = order.saga.version;
                Some(Ok(order))
            }
            Err(error) => Some(Err(error)),
        };
    }
}

fn order_id(text: &str) -> Result<OrderId, Status> {
    text.parse().map_err(|error: events::IdError| invalid("order_id", error.to_string()))
}

fn invalid(field: &str, problem: String) -> Status {
    Error::Invalid(Invalid::new(field, problem)).into()
}

fn message(order: Order) -> pb::Order {
    let saga = order.saga;
    let status = match saga.status {
        OrderStatus::Pending => pb::OrderStatus::Pending,
        OrderStatus::Confirmed => pb::OrderStatus::Confirmed,
        OrderStatus::Cancelled => pb::OrderStatus::Cancelled,
        OrderStatus::Completed => pb::OrderStatus::Completed,
    };
    let created_at = prost_types::Timestamp {
        seconds: order.created_at.unix_timestamp(),
        nanos: i32::try_from(order.created_at.nanosecond()).unwrap_or_default(),
    };
    pb::Order {
        order_id: saga.order_id.to_string(),
        customer: order.customer,
        status: status.into(),
        lines: order
            .lines
            .into_iter()
            .map(|line| pb::PricedLine {
                sku: line.sku.0,
                quantity: line.quantity,
                unit_price_minor: line.unit_price_minor,
            })
            .collect(),
        total_minor: saga.total_minor,
        currency: saga.currency,
        version: saga.version,
        created_at: Some(created_at),
        cancel_reason: saga.cancel_reason.map(|reason| reason.as_str().to_owned()).unwrap_or_default(),
    }
}
