//! What the events say. Amounts are in the currency's minor unit; no event carries personal data.

mod order;
mod payment;
mod stock;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::OrderId;

pub use order::{CancelReason, OrderCancelled, OrderCompleted, OrderConfirmed, OrderCreated, OrderLine};
pub use payment::{
    PaymentAuthorized, PaymentCaptureFailed, PaymentCaptured, PaymentDeclined, PaymentRefunded, PaymentVoided,
};
pub use stock::{RejectedLine, ReservedLine, StockCommitted, StockRejected, StockReleased, StockReserved};

/// Any event of Brew. In JSON the field `type` tells which one it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    /// An order was accepted.
    #[serde(rename = "order.created")]
    OrderCreated(OrderCreated),
    /// Stock and payment have both said yes.
    #[serde(rename = "order.confirmed")]
    OrderConfirmed(OrderConfirmed),
    /// The order will not be made; whatever was done for it is to be undone.
    #[serde(rename = "order.cancelled")]
    OrderCancelled(OrderCancelled),
    /// The money is captured and the stock committed.
    #[serde(rename = "order.completed")]
    OrderCompleted(OrderCompleted),
    /// All lines of an order were set aside.
    #[serde(rename = "stock.reserved")]
    StockReserved(StockReserved),
    /// Nothing was set aside, since at least one line could not be.
    #[serde(rename = "stock.rejected")]
    StockRejected(StockRejected),
    /// What was set aside has left the shelf for good.
    #[serde(rename = "stock.committed")]
    StockCommitted(StockCommitted),
    /// What was set aside, if anything, is back on the shelf.
    #[serde(rename = "stock.released")]
    StockReleased(StockReleased),
    /// The provider holds the amount for us.
    #[serde(rename = "payment.authorized")]
    PaymentAuthorized(PaymentAuthorized),
    /// The provider will not hold the amount.
    #[serde(rename = "payment.declined")]
    PaymentDeclined(PaymentDeclined),
    /// The amount is ours.
    #[serde(rename = "payment.captured")]
    PaymentCaptured(PaymentCaptured),
    /// The amount that was held cannot be had, for good.
    #[serde(rename = "payment.capture_failed")]
    PaymentCaptureFailed(PaymentCaptureFailed),
    /// The provider holds the amount no longer.
    #[serde(rename = "payment.voided")]
    PaymentVoided(PaymentVoided),
    /// The amount went back.
    #[serde(rename = "payment.refunded")]
    PaymentRefunded(PaymentRefunded),
}

/// Every type, as in the `event-type` header.
const TYPES: [&str; 14] = [
    "order.created",
    "order.confirmed",
    "order.cancelled",
    "order.completed",
    "stock.reserved",
    "stock.rejected",
    "stock.committed",
    "stock.released",
    "payment.authorized",
    "payment.declined",
    "payment.captured",
    "payment.capture_failed",
    "payment.voided",
    "payment.refunded",
];

impl Event {
    /// The value of the `event-type` header, equal to the payload's `type`.
    #[must_use]
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::OrderCreated(_) => "order.created",
            Self::OrderConfirmed(_) => "order.confirmed",
            Self::OrderCancelled(_) => "order.cancelled",
            Self::OrderCompleted(_) => "order.completed",
            Self::StockReserved(_) => "stock.reserved",
            Self::StockRejected(_) => "stock.rejected",
            Self::StockCommitted(_) => "stock.committed",
            Self::StockReleased(_) => "stock.released",
            Self::PaymentAuthorized(_) => "payment.authorized",
            Self::PaymentDeclined(_) => "payment.declined",
            Self::PaymentCaptured(_) => "payment.captured",
            Self::PaymentCaptureFailed(_) => "payment.capture_failed",
            Self::PaymentVoided(_) => "payment.voided",
            Self::PaymentRefunded(_) => "payment.refunded",
        }
    }

    /// Whether a payload of this type can be read at all.
    #[must_use]
    pub fn knows(event_type: &str) -> bool {
        TYPES.contains(&event_type)
    }

    /// The order that the event is about: its aggregate.
    #[must_use]
    pub fn order_id(&self) -> OrderId {
        match self {
            Self::OrderCreated(event) => event.order_id,
            Self::OrderConfirmed(event) => event.order_id,
            Self::OrderCancelled(event) => event.order_id,
            Self::OrderCompleted(event) => event.order_id,
            Self::StockReserved(event) => event.order_id,
            Self::StockRejected(event) => event.order_id,
            Self::StockCommitted(event) => event.order_id,
            Self::StockReleased(event) => event.order_id,
            Self::PaymentAuthorized(event) => event.order_id,
            Self::PaymentDeclined(event) => event.order_id,
            Self::PaymentCaptured(event) => event.order_id,
            Self::PaymentCaptureFailed(event) => event.order_id,
            Self::PaymentVoided(event) => event.order_id,
            Self::PaymentRefunded(event) => event.order_id,
        }
    }
}

/// Reads a currency's code, which must be one of ISO 4217: money in an unknown currency is no money.
fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let code = String::deserialize(deserializer)?;
    match iso_currency::Currency::from_code(&code) {
        Some(_) => Ok(code),
        None => Err(D::Error::custom(format_args!("unknown currency `{code}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_field_and_the_header_value_agree() {
        let order_id = OrderId(7);
        let (version, amount_minor, currency) = (1, 100, "EUR".to_owned());
        let events = [
            Event::StockReserved(StockReserved { order_id, version, lines: vec![] }),
            Event::StockReleased(StockReleased { order_id, version, lines: vec![] }),
            Event::OrderCompleted(OrderCompleted { order_id, version }),
            Event::OrderCancelled(OrderCancelled {
                order_id,
                version,
                reason: CancelReason::PaymentDeclined,
            }),
            Event::PaymentRefunded(PaymentRefunded { order_id, version, amount_minor, currency }),
        ];
        for event in events {
            let json = serde_json::to_value(&event).unwrap();
            assert_eq!(json["type"], event.event_type());
            assert_eq!(json["order_id"], "order-7");
            assert!(Event::knows(event.event_type()));
            assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
        }
        assert!(!Event::knows("order.vanished"));
    }

    /// Money that makes no sense makes no event.
    #[test]
    fn unknown_currencies_and_overflowing_amounts_are_refused() {
        let good = r#"{"type":"payment.captured","order_id":"order-7","version":1,"amount_minor":1,"currency":"EUR"}"#;
        assert!(serde_json::from_str::<Event>(good).is_ok());
        for code in ["", "eur", "EURO", "QQQ", "€"] {
            let bad = serde_json::from_str::<Event>(&good.replace("EUR", code)).unwrap_err();
            assert!(bad.to_string().contains(&format!("unknown currency `{code}`")), "{bad}");
        }
        for amount in ["9223372036854775808", "1e30", "1.5", "\"1\"", "null"] {
            let bad = good.replace("\"amount_minor\":1", &format!("\"amount_minor\":{amount}"));
            assert!(serde_json::from_str::<Event>(&bad).is_err(), "{amount}");
        }
    }

    /// A record of an older publisher has no payment token.
    #[test]
    fn fields_that_came_later_have_a_default() {
        let old = r#"{"type":"order.created","order_id":"order-7","version":1,"lines":[],
                      "total_minor":1,"currency":"EUR"}"#;
        let Event::OrderCreated(event) = serde_json::from_str(old).unwrap() else {
            panic!("another event");
        };
        assert_eq!(event.payment_token, "");
        let newer = old.replace("\"version\":1", "\"version\":1,\"loyalty\":true");
        assert!(serde_json::from_str::<Event>(&newer).is_ok(), "fields of a later version are ignored");
    }
}
