//! gRPC: payment to message.

use database::Gate;
use events::OrderId;
use proto::payment::v1::{
    self as pb, GetPaymentRequest, GetPaymentResponse, payment_service_server::PaymentService,
};
use sea_orm::DatabaseConnection;
use tonic::{Request, Response, Status};

use crate::{Error, app::get_payment};

/// The service's gRPC face.
pub(crate) struct Payments {
    pub(crate) db: DatabaseConnection,
    pub(crate) gate: Gate,
}

#[tonic::async_trait]
impl PaymentService for Payments {
    async fn get_payment(
        &self,
        request: Request<GetPaymentRequest>,
    ) -> Result<Response<GetPaymentResponse>, Status> {
        let id: OrderId = request
            .into_inner()
            .order_id
            .parse()
            .map_err(|error: events::IdError| Status::invalid_argument(format!("order_id: {error}")))?;
        let _place = self.gate.enter().await.map_err(Error::from)?;
        let payment = get_payment(&self.db, id).await?;
        Ok(Response::new(GetPaymentResponse {
            payment: Some(pb::Payment {
                order_id: payment.order_id.to_string(),
                status: payment.status.as_str().to_owned(),
                amount_minor: payment.amount_minor,
                currency: payment.currency,
                version: payment.version,
            }),
        }))
    }
}
