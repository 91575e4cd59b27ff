//! Events of orders, from order-service.

use serde::{Deserialize, Serialize};

use crate::{OrderId, Sku};

/// `order.created`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCreated {
    /// The new order.
    pub order_id: OrderId,
    /// The order's version after this event; 1.
    pub version: i64,
    /// What was ordered, each sku once.
    pub lines: Vec<OrderLine>,
    /// Sum over the lines, minor units.
    pub total_minor: i64,
    /// ISO 4217.
    #[serde(deserialize_with = "super::currency")]
    pub currency: String,
    /// What the provider calls the customer's means of payment; never the card's own number.
    #[serde(default)]
    pub payment_token: String,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLine {
    /// What.
    pub sku: Sku,
    /// How many; at least 1.
    pub quantity: i32,
    /// Price of one, minor units.
    pub unit_price_minor: i64,
}

/// `order.confirmed`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderConfirmed {
    /// Which order.
    pub order_id: OrderId,
    /// The order's version after this event.
    pub version: i64,
    /// What is to be captured, minor units.
    pub total_minor: i64,
    /// ISO 4217.
    #[serde(deserialize_with = "super::currency")]
    pub currency: String,
}

/// `order.cancelled`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCancelled {
    /// Which order.
    pub order_id: OrderId,
    /// The order's version after this event.
    pub version: i64,
    /// Why.
    pub reason: CancelReason,
}

/// Why an order was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// At least one line could not be met.
    OutOfStock,
    /// The provider will not hold the amount.
    PaymentDeclined,
    /// The amount that was held could not be had.
    CaptureFailed,
    /// Stock or payment gave no answer in time.
    TimedOut,
    /// The customer wished so.
    Requested,
}

impl CancelReason {
    /// As it stands in payloads and databases.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutOfStock => "out_of_stock",
            Self::PaymentDeclined => "payment_declined",
            Self::CaptureFailed => "capture_failed",
            Self::TimedOut => "timed_out",
            Self::Requested => "requested",
        }
    }

    /// The reason of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::OutOfStock, Self::PaymentDeclined, Self::CaptureFailed, Self::TimedOut, Self::Requested]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// `order.completed`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCompleted {
    /// Which order.
    pub order_id: OrderId,
    /// The order's version after this event.
    pub version: i64,
}
