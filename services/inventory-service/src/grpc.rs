//! gRPC: request to command, stock to message.

use database::Gate;
use events::Sku;
use proto::inventory::v1::{
    GetStockRequest, GetStockResponse, ListStockRequest, ListStockResponse, RestockRequest, RestockResponse,
    StockLevel, inventory_service_server::InventoryService,
};
use sea_orm::DatabaseConnection;
use tonic::{Request, Response, Status};

use crate::{
    Error,
    app::{get_stock, list_stock, restock},
};

const MAX_QUANTITY: i32 = 1_000_000;

/// The service's gRPC face.
pub(crate) struct Inventory {
    pub(crate) db: DatabaseConnection,
    pub(crate) gate: Gate,
}

#[tonic::async_trait]
impl InventoryService for Inventory {
    async fn get_stock(
        &self,
        request: Request<GetStockRequest>,
    ) -> Result<Response<GetStockResponse>, Status> {
        let sku = sku(request.into_inner().sku)?;
        let _place = self.gate.enter().await.map_err(Error::from)?;
        let available = get_stock(&self.db, &sku).await?;
        Ok(Response::new(GetStockResponse { level: Some(level(sku, available)) }))
    }

    async fn list_stock(
        &self,
        _request: Request<ListStockRequest>,
    ) -> Result<Response<ListStockResponse>, Status> {
        let _place = self.gate.enter().await.map_err(Error::from)?;
        let levels = list_stock(&self.db).await?;
        let levels = levels.into_iter().map(|(sku, available)| level(sku, available)).collect();
        Ok(Response::new(ListStockResponse { levels }))
    }

    async fn restock(&self, request: Request<RestockRequest>) -> Result<Response<RestockResponse>, Status> {
        let body = request.into_inner();
        let sku = sku(body.sku)?;
        if !(1..=MAX_QUANTITY).contains(&body.quantity) {
            return Err(Status::invalid_argument(format!("quantity: must be 1 to {MAX_QUANTITY}")));
        }
        let visible = body.idempotency_key.bytes().all(|byte| byte.is_ascii_graphic());
        if !visible || !(16..=255).contains(&body.idempotency_key.len()) {
            return Err(Status::invalid_argument(
                "idempotency_key: must be 16 to 255 visible ASCII characters",
            ));
        }
        let _place = self.gate.enter().await.map_err(Error::from)?;
        let available = restock(&self.db, &sku, body.quantity, &body.idempotency_key).await?;
        Ok(Response::new(RestockResponse { level: Some(level(sku, available)) }))
    }
}

fn sku(text: String) -> Result<Sku, Status> {
    if text.is_empty() || text.len() > 64 || text.chars().any(char::is_control) {
        return Err(Status::invalid_argument(
            "sku: must be 1 to 64 characters, none of them a control character",
        ));
    }
    Ok(Sku(text))
}

fn level(sku: Sku, available: i64) -> StockLevel {
    StockLevel { sku: sku.0, available }
}
