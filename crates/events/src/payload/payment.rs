//! Events of payments, from payment-service.

use serde::{Deserialize, Serialize};

use crate::OrderId;

/// `payment.authorized`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentAuthorized {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the payment after this event.
    pub version: i64,
    /// What is held, minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    #[serde(deserialize_with = "super::currency")]
    pub currency: String,
}

/// `payment.declined`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentDeclined {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the payment after this event.
    pub version: i64,
    /// The provider's word.
    pub reason: String,
}

/// `payment.captured`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentCaptured {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the payment after this event.
    pub version: i64,
    /// What is ours, minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    #[serde(deserialize_with = "super::currency")]
    pub currency: String,
}

/// `payment.capture_failed`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentCaptureFailed {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the payment after this event.
    pub version: i64,
    /// The provider's word.
    pub reason: String,
}

/// `payment.voided`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentVoided {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the payment after this event.
    pub version: i64,
}

/// `payment.refunded`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRefunded {
    /// For which order.
    pub order_id: OrderId,
    /// The version of the payment after this event.
    pub version: i64,
    /// What went back, minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    #[serde(deserialize_with = "super::currency")]
    pub currency: String,
}
