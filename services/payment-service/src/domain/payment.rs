//! The state graph of a payment. One call to the provider at a time; a cancel that meets a call under way is
//! remembered and undoes what the call has done.

use events::{
    Event, OrderId, PaymentAuthorized, PaymentCaptureFailed, PaymentCaptured, PaymentDeclined,
    PaymentRefunded, PaymentVoided,
};
use uuid::Uuid;

/// Where a payment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The provider is asked to hold the amount.
    Authorizing,
    /// The provider holds it.
    Authorized,
    /// The provider will not.
    Declined,
    /// The provider is asked for the amount.
    Capturing,
    /// It is ours.
    Captured,
    /// It cannot be had.
    CaptureFailed,
    /// The provider is asked to let go.
    Voiding,
    /// It has.
    Voided,
    /// The provider is asked to give back.
    Refunding,
    /// It has.
    Refunded,
    /// Cancelled before anything was asked.
    Cancelled,
}

impl Status {
    const ALL: [Self; 11] = [
        Self::Authorizing,
        Self::Authorized,
        Self::Declined,
        Self::Capturing,
        Self::Captured,
        Self::CaptureFailed,
        Self::Voiding,
        Self::Voided,
        Self::Refunding,
        Self::Refunded,
        Self::Cancelled,
    ];

    /// As it stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authorizing => "authorizing",
            Self::Authorized => "authorized",
            Self::Declined => "declined",
            Self::Capturing => "capturing",
            Self::Captured => "captured",
            Self::CaptureFailed => "capture_failed",
            Self::Voiding => "voiding",
            Self::Voided => "voided",
            Self::Refunding => "refunding",
            Self::Refunded => "refunded",
            Self::Cancelled => "cancelled",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// What the provider is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Hold the amount.
    Authorize,
    /// Take what is held.
    Capture,
    /// Let go of what is held.
    Void,
    /// Give back what was taken.
    Refund,
}

impl Operation {
    /// As it stands in the database and in the provider's API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authorize => "authorize",
            Self::Capture => "capture",
            Self::Void => "void",
            Self::Refund => "refund",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Authorize, Self::Capture, Self::Void, Self::Refund]
            .into_iter()
            .find(|operation| operation.as_str() == text)
    }
}

/// The provider's definite answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done, under this authorization.
    Done(Uuid),
    /// Refused for good.
    Refused(String),
}

/// What follows: a call to make, an event to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Next {
    /// To be made.
    pub call: Option<Operation>,
    /// To be told.
    pub event: Option<Event>,
}

/// What cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// A confirmation of an order whose money was never held.
    #[error("{0} is confirmed, but its payment is {found}", found = .1.as_str())]
    NotAuthorized(OrderId, Status),
    /// An order without an amount.
    #[error("{0} is over {1}, which cannot be paid")]
    Amount(OrderId, i64),
    /// The provider refuses to undo.
    #[error("the provider refuses to undo what it did for {0}: {1}")]
    NotUndone(OrderId, String),
}

/// One order's payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// For which order.
    pub order_id: OrderId,
    /// Minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// The provider's name for the means of payment.
    pub token: String,
    /// Where it stands.
    pub status: Status,
    /// A cancel came while a call was under way.
    pub cancel_requested: bool,
    /// The provider's name for what it holds.
    pub authorization_id: Option<Uuid>,
    /// Grows by one with each change of status.
    pub version: i64,
}

impl Payment {
    /// What an event of an order begins when there is no payment yet: a payment to be held, or, for a cancel,
    /// one that never will be. Others begin nothing.
    ///
    /// # Errors
    /// [`Impossible::Amount`]; [`Impossible::NotAuthorized`] for a confirmation.
    pub fn begin(event: &Event) -> Result<Option<(Self, Next)>, Impossible> {
        let payment = |order_id, amount_minor, currency: &str, token: &str, status| Self {
            order_id,
            amount_minor,
            currency: currency.to_owned(),
            token: token.to_owned(),
            status,
            cancel_requested: false,
            authorization_id: None,
            version: 1,
        };
        match event {
            Event::OrderCreated(order) if order.total_minor <= 0 => {
                Err(Impossible::Amount(order.order_id, order.total_minor))
            }
            Event::OrderCreated(order) => {
                let (amount, currency, token) = (order.total_minor, &order.currency, &order.payment_token);
                let next = Next { call: Some(Operation::Authorize), event: None };
                Ok(Some((payment(order.order_id, amount, currency, token, Status::Authorizing), next)))
            }
            Event::OrderCancelled(order) => {
                Ok(Some((payment(order.order_id, 0, "", "", Status::Cancelled), Next::default())))
            }
            Event::OrderConfirmed(order) => Err(Impossible::NotAuthorized(order.order_id, Status::Cancelled)),
            _ => Ok(None),
        }
    }

    /// What an event of the order does to the payment.
    ///
    /// # Errors
    /// [`Impossible::NotAuthorized`].
    pub fn hear(&mut self, event: &Event) -> Result<Next, Impossible> {
        match event {
            Event::OrderConfirmed(_) => match self.status {
                Status::Authorized => Ok(self.call(Status::Capturing, Operation::Capture)),
                Status::Authorizing | Status::Declined => {
                    Err(Impossible::NotAuthorized(self.order_id, self.status))
                }
                Status::Capturing
                | Status::Captured
                | Status::CaptureFailed
                | Status::Voiding
                | Status::Voided
                | Status::Refunding
                | Status::Refunded
                | Status::Cancelled => Ok(Next::default()),
            },
            Event::OrderCancelled(_) => Ok(self.cancel()),
            // Repeats of the beginning, and what is not about money.
            _ => Ok(Next::default()),
        }
    }

    fn cancel(&mut self) -> Next {
        match self.status {
            Status::Authorizing | Status::Capturing => {
                self.cancel_requested = true;
                Next::default()
            }
            Status::Authorized | Status::CaptureFailed => self.call(Status::Voiding, Operation::Void),
            Status::Captured => self.call(Status::Refunding, Operation::Refund),
            Status::Declined
            | Status::Voiding
            | Status::Voided
            | Status::Refunding
            | Status::Refunded
            | Status::Cancelled => Next::default(),
        }
    }

    /// The call under way, if all it does is to be undone.
    #[must_use]
    pub fn wasted(&self) -> Option<Operation> {
        (self.status == Status::Authorizing && self.cancel_requested).then_some(Operation::Authorize)
    }

    /// The [wasted](Self::wasted) call was taken back before it was made.
    pub fn withdraw(&mut self) {
        if self.wasted().is_some() {
            self.cancel_requested = false;
            self.become_(Status::Cancelled);
        }
    }

    /// What the provider's answer to the call under way does to the payment. An answer to no call changes nothing.
    ///
    /// # Errors
    /// [`Impossible::NotUndone`]: a person must look.
    pub fn settle(&mut self, outcome: &Outcome) -> Result<Next, Impossible> {
        let (order_id, amount_minor, currency) = (self.order_id, self.amount_minor, self.currency.clone());
        let event = match (self.status, outcome) {
            (Status::Authorizing, Outcome::Done(id)) => {
                self.authorization_id = Some(*id);
                let version = self.become_(Status::Authorized);
                Event::PaymentAuthorized(PaymentAuthorized { order_id, version, amount_minor, currency })
            }
            (Status::Authorizing, Outcome::Refused(reason)) => {
                let (version, reason) = (self.become_(Status::Declined), reason.clone());
                Event::PaymentDeclined(PaymentDeclined { order_id, version, reason })
            }
            (Status::Capturing, Outcome::Done(_)) => {
                let version = self.become_(Status::Captured);
                Event::PaymentCaptured(PaymentCaptured { order_id, version, amount_minor, currency })
            }
            (Status::Capturing, Outcome::Refused(reason)) => {
                let (version, reason) = (self.become_(Status::CaptureFailed), reason.clone());
                Event::PaymentCaptureFailed(PaymentCaptureFailed { order_id, version, reason })
            }
            (Status::Voiding, Outcome::Done(_)) => {
                let version = self.become_(Status::Voided);
                Event::PaymentVoided(PaymentVoided { order_id, version })
            }
            (Status::Refunding, Outcome::Done(_)) => {
                let version = self.become_(Status::Refunded);
                Event::PaymentRefunded(PaymentRefunded { order_id, version, amount_minor, currency })
            }
            (Status::Voiding | Status::Refunding, Outcome::Refused(reason)) => {
                return Err(Impossible::NotUndone(order_id, reason.clone()));
            }
            _ => return Ok(Next::default()),
        };
        let call = if std::mem::take(&mut self.cancel_requested) { self.cancel().call } else { None };
        Ok(Next { call, event: Some(event) })
    }

    fn call(&mut self, status: Status, operation: Operation) -> Next {
        self.become_(status);
        Next { call: Some(operation), event: None }
    }

    fn become_(&mut self, status: Status) -> i64 {
        self.status = status;
        self.version += 1;
        self.version
    }
}

#[cfg(test)]
mod tests;
