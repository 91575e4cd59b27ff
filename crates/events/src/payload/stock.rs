//! Events of stock, from inventory-service.

use serde::{Deserialize, Serialize};

use crate::{OrderId, Sku};

/// `stock.reserved`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockReserved {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the reservation after this event.
    pub version: i64,
    /// What was set aside.
    pub lines: Vec<ReservedLine>,
}

/// One line that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedLine {
    /// What.
    pub sku: Sku,
    /// How many.
    pub quantity: i32,
}

/// `stock.rejected`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockRejected {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the reservation after this event.
    pub version: i64,
    /// The lines that could not be met.
    pub short: Vec<RejectedLine>,
}

/// One line that could not be met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedLine {
    /// What.
    pub sku: Sku,
    /// How many were asked for.
    pub wanted: i32,
    /// How many there were.
    pub available: i64,
}

/// `stock.committed`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockCommitted {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the reservation after this event.
    pub version: i64,
}

/// `stock.released`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockReleased {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the reservation after this event.
    pub version: i64,
    /// What is back; empty if nothing had been set aside.
    pub lines: Vec<ReservedLine>,
}
