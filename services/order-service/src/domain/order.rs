//! An order, and the event that announces it.

use events::{Event, OrderCreated, OrderId, OrderLine};
use time::OffsetDateTime;

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderStatus {
    /// Accepted; stock and payment have not answered.
    Pending,
}

impl OrderStatus {
    /// As it stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text == Self::Pending.as_str()).then_some(Self::Pending)
    }
}

/// A checked and priced order that has no id yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedOrder {
    /// Who orders.
    pub customer: String,
    /// What, at which price.
    pub lines: Vec<OrderLine>,
    /// Sum over the lines, minor units.
    pub total_minor: i64,
    /// ISO 4217.
    pub currency: String,
}

impl PricedOrder {
    /// Becomes an order, with the event that tells of it.
    #[must_use]
    pub fn place(self, id: OrderId, created_at: OffsetDateTime) -> (Order, Event) {
        let order = Order {
            id,
            customer: self.customer,
            status: OrderStatus::Pending,
            lines: self.lines,
            total_minor: self.total_minor,
            currency: self.currency,
            version: 1,
            created_at,
        };
        let event = Event::OrderCreated(OrderCreated {
            order_id: id,
            version: order.version,
            lines: order.lines.clone(),
            total_minor: order.total_minor,
            currency: order.currency.clone(),
        });
        (order, event)
    }
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id; also its aggregate id.
    pub id: OrderId,
    /// Who ordered.
    pub customer: String,
    /// Where it stands.
    pub status: OrderStatus,
    /// What, at which price.
    pub lines: Vec<OrderLine>,
    /// Sum over the lines, minor units.
    pub total_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// Grows by one with each change.
    pub version: i64,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
}
