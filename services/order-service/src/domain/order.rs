//! An order, and the event that announces it.

use events::{Event, OrderCreated, OrderId, OrderLine};
use time::OffsetDateTime;

use super::saga::{OrderStatus, PaymentAnswer, Saga, StockAnswer};

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
    /// What the provider calls the means of payment.
    pub payment_token: String,
}

impl PricedOrder {
    /// Becomes an order, with the event that tells of it.
    #[must_use]
    pub fn place(self, id: OrderId, created_at: OffsetDateTime) -> (Order, Event) {
        let saga = Saga {
            order_id: id,
            total_minor: self.total_minor,
            currency: self.currency,
            status: OrderStatus::Pending,
            stock: StockAnswer::None,
            payment: PaymentAnswer::None,
            cancel_reason: None,
            version: 1,
        };
        let event = Event::OrderCreated(OrderCreated {
            order_id: id,
            version: saga.version,
            lines: self.lines.clone(),
            total_minor: saga.total_minor,
            currency: saga.currency.clone(),
            payment_token: self.payment_token,
        });
        (Order { saga, customer: self.customer, lines: self.lines, created_at }, event)
    }
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Where it stands.
    pub saga: Saga,
    /// Who ordered.
    pub customer: String,
    /// What, at which price.
    pub lines: Vec<OrderLine>,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
}
