//! What the events say. Amounts are in the currency's minor unit; no event carries personal data.

use serde::{Deserialize, Serialize};

use crate::{OrderId, Sku};

/// Any event of Brew. In JSON the field `type` tells which one it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    /// An order was accepted.
    #[serde(rename = "order.created")]
    OrderCreated(OrderCreated),
    /// All lines of an order were set aside.
    #[serde(rename = "stock.reserved")]
    StockReserved(StockReserved),
    /// Nothing was set aside, since at least one line could not be.
    #[serde(rename = "stock.rejected")]
    StockRejected(StockRejected),
}

impl Event {
    /// The value of the `event-type` header, equal to the payload's `type`.
    #[must_use]
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::OrderCreated(_) => "order.created",
            Self::StockReserved(_) => "stock.reserved",
            Self::StockRejected(_) => "stock.rejected",
        }
    }

    /// Whether a payload of this type can be read at all.
    #[must_use]
    pub fn knows(event_type: &str) -> bool {
        matches!(event_type, "order.created" | "stock.reserved" | "stock.rejected")
    }

    /// The order that the event is about: its aggregate.
    #[must_use]
    pub fn order_id(&self) -> OrderId {
        match self {
            Self::OrderCreated(event) => event.order_id,
            Self::StockReserved(event) => event.order_id,
            Self::StockRejected(event) => event.order_id,
        }
    }
}

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
    pub currency: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_field_and_the_header_value_agree() {
        let reserved = StockReserved { order_id: OrderId(7), version: 1, lines: vec![] };
        let event = Event::StockReserved(reserved);
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["type"], event.event_type());
        assert_eq!(json["order_id"], "order-7");
        assert!(Event::knows(event.event_type()));
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    }
}
