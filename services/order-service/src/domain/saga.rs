//! The state graph of an order (`docs/states.md`): what stock and payment have answered, in whatever order, and
//! what that makes of the order. Late, repeated and reordered answers are normal input.

use events::{
    CancelReason, Event, OrderCancelled, OrderCompleted, OrderConfirmed, OrderId, PaymentAuthorized,
    PaymentCaptured, PaymentRefunded,
};

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderStatus {
    /// Accepted; stock or payment have not answered.
    Pending,
    /// Both said yes.
    Confirmed,
    /// Will not be made; whatever was done for it is undone.
    Cancelled,
    /// Money captured, stock committed.
    Completed,
}

impl OrderStatus {
    /// Whether it can change no more; what a cancel undoes may still be under way.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Confirmed => false,
            Self::Completed | Self::Cancelled => true,
        }
    }
}

/// What stock has answered, the furthest so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StockAnswer {
    /// Nothing.
    None,
    /// Set aside.
    Reserved,
    /// Not to be had.
    Rejected,
    /// Gone from the shelf.
    Committed,
    /// Back on the shelf.
    Released,
}

/// What payment has answered, the furthest so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaymentAnswer {
    /// Nothing.
    None,
    /// Held.
    Authorized,
    /// Not to be had.
    Declined,
    /// Ours.
    Captured,
    /// Was held and could not be had.
    CaptureFailed,
    /// Held no longer.
    Voided,
    /// Given back.
    Refunded,
}

/// What moves an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'e> {
    /// An event of another service.
    Answer(&'e Event),
    /// No answer in time.
    TimedOut,
    /// The customer's wish.
    CancelRequested,
}

/// Why an input was refused; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A payment over another amount than the order's.
    #[error("payment over {found_minor} {found_currency}, but {order_id} is over {total_minor} {currency}")]
    Amount {
        /// Which order.
        order_id: OrderId,
        /// The payment's.
        found_minor: i64,
        /// The payment's.
        found_currency: String,
        /// The order's.
        total_minor: i64,
        /// The order's.
        currency: String,
    },
    /// Nothing can be cancelled any more.
    #[error("{0} is completed and cannot be cancelled")]
    Completed(OrderId),
}

/// One step along the graph, with the event that tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Before.
    pub from: OrderStatus,
    /// After.
    pub to: OrderStatus,
    /// The order's version after it.
    pub version: i64,
    /// What is to be told.
    pub event: Event,
}

/// An order's way through the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saga {
    /// Which order.
    pub order_id: OrderId,
    /// What the payment must be over, minor units.
    pub total_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// Where it stands.
    pub status: OrderStatus,
    /// What stock has answered.
    pub stock: StockAnswer,
    /// What payment has answered.
    pub payment: PaymentAnswer,
    /// Set exactly when cancelled.
    pub cancel_reason: Option<CancelReason>,
    /// Grows by one with each change.
    pub version: i64,
}

impl Saga {
    /// Takes `input` in and returns the steps that follow from it; none if it changes nothing, or only what is
    /// known of the answers.
    ///
    /// # Errors
    /// [`Refused`]; the saga is as before.
    pub fn apply(&mut self, input: Input<'_>) -> Result<Vec<Step>, Refused> {
        match input {
            Input::Answer(event) => {
                self.check_amount(event)?;
                let before = (self.stock, self.payment);
                self.note(event);
                if before != (self.stock, self.payment) {
                    self.version += 1;
                }
            }
            Input::TimedOut if self.status == OrderStatus::Pending => {
                return Ok(vec![self.cancel(CancelReason::TimedOut)]);
            }
            Input::TimedOut => {}
            Input::CancelRequested => match self.status {
                OrderStatus::Pending | OrderStatus::Confirmed => {
                    return Ok(vec![self.cancel(CancelReason::Requested)]);
                }
                OrderStatus::Cancelled => {}
                OrderStatus::Completed => return Err(Refused::Completed(self.order_id)),
            },
        }
        let mut steps = Vec::new();
        while let Some(step) = self.step() {
            steps.push(step);
        }
        Ok(steps)
    }

    /// The furthest answer counts: a repeat or a straggler takes nothing back.
    fn note(&mut self, event: &Event) {
        let (stock, payment) = match event {
            Event::StockReserved(_) => (StockAnswer::Reserved, PaymentAnswer::None),
            Event::StockRejected(_) => (StockAnswer::Rejected, PaymentAnswer::None),
            Event::StockCommitted(_) => (StockAnswer::Committed, PaymentAnswer::None),
            Event::StockReleased(_) => (StockAnswer::Released, PaymentAnswer::None),
            Event::PaymentAuthorized(_) => (StockAnswer::None, PaymentAnswer::Authorized),
            Event::PaymentDeclined(_) => (StockAnswer::None, PaymentAnswer::Declined),
            Event::PaymentCaptured(_) => (StockAnswer::None, PaymentAnswer::Captured),
            Event::PaymentCaptureFailed(_) => (StockAnswer::None, PaymentAnswer::CaptureFailed),
            Event::PaymentVoided(_) => (StockAnswer::None, PaymentAnswer::Voided),
            Event::PaymentRefunded(_) => (StockAnswer::None, PaymentAnswer::Refunded),
            Event::OrderCreated(_)
            | Event::OrderConfirmed(_)
            | Event::OrderCancelled(_)
            | Event::OrderCompleted(_) => (StockAnswer::None, PaymentAnswer::None),
        };
        self.stock = self.stock.max(stock);
        self.payment = self.payment.max(payment);
    }

    fn step(&mut self) -> Option<Step> {
        match self.status {
            OrderStatus::Pending => match (self.stock, self.payment) {
                (StockAnswer::Rejected, _) => Some(self.cancel(CancelReason::OutOfStock)),
                (_, PaymentAnswer::Declined) => Some(self.cancel(CancelReason::PaymentDeclined)),
                (
                    StockAnswer::Reserved | StockAnswer::Committed,
                    PaymentAnswer::Authorized | PaymentAnswer::Captured | PaymentAnswer::CaptureFailed,
                ) => Some(self.confirm()),
                _ => None,
            },
            OrderStatus::Confirmed => match (self.stock, self.payment) {
                (_, PaymentAnswer::CaptureFailed) => Some(self.cancel(CancelReason::CaptureFailed)),
                (StockAnswer::Committed, PaymentAnswer::Captured) => Some(self.complete()),
                _ => None,
            },
            OrderStatus::Cancelled | OrderStatus::Completed => None,
        }
    }

    fn confirm(&mut self) -> Step {
        let (order_id, total_minor, currency) = (self.order_id, self.total_minor, self.currency.clone());
        self.go(OrderStatus::Confirmed, |version| {
            Event::OrderConfirmed(OrderConfirmed { order_id, version, total_minor, currency })
        })
    }

    fn complete(&mut self) -> Step {
        let order_id = self.order_id;
        self.go(OrderStatus::Completed, |version| Event::OrderCompleted(OrderCompleted { order_id, version }))
    }

    fn cancel(&mut self, reason: CancelReason) -> Step {
        let order_id = self.order_id;
        self.cancel_reason = Some(reason);
        self.go(OrderStatus::Cancelled, |version| {
            Event::OrderCancelled(OrderCancelled { order_id, version, reason })
        })
    }

    fn go(&mut self, to: OrderStatus, event: impl FnOnce(i64) -> Event) -> Step {
        let from = self.status;
        self.status = to;
        self.version += 1;
        Step { from, to, version: self.version, event: event(self.version) }
    }

    fn check_amount(&self, event: &Event) -> Result<(), Refused> {
        let (found_minor, found_currency) = match event {
            Event::PaymentAuthorized(PaymentAuthorized { amount_minor, currency, .. })
            | Event::PaymentCaptured(PaymentCaptured { amount_minor, currency, .. })
            | Event::PaymentRefunded(PaymentRefunded { amount_minor, currency, .. }) => {
                (*amount_minor, currency)
            }
            _ => return Ok(()),
        };
        if found_minor == self.total_minor && *found_currency == self.currency {
            return Ok(());
        }
        Err(Refused::Amount {
            order_id: self.order_id,
            found_minor,
            found_currency: found_currency.clone(),
            total_minor: self.total_minor,
            currency: self.currency.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
