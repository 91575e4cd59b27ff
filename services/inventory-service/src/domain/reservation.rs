//! What becomes of an order's stock. Reserve all lines or none; commit what was confirmed; give back what was
//! cancelled, also when the cancel comes first.

use std::collections::BTreeMap;

use events::{
    Event, OrderCreated, OrderId, RejectedLine, ReservedLine, Sku, StockCommitted, StockRejected,
    StockReleased, StockReserved,
};

/// How many of each sku are available. A sku that is not here is none.
pub type Levels = BTreeMap<Sku, i64>;

/// Where a reservation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing is known of the order. Never committed to the database.
    New,
    /// All lines are set aside.
    Reserved,
    /// None is, since at least one could not be.
    Rejected,
    /// What was set aside has left the shelf for good.
    Committed,
    /// What was set aside is back, or will never be: an order that comes after its cancel finds this.
    Released,
}

impl Status {
    const ALL: [Self; 5] = [Self::New, Self::Reserved, Self::Rejected, Self::Committed, Self::Released];

    /// As it stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Reserved => "reserved",
            Self::Rejected => "rejected",
            Self::Committed => "committed",
            Self::Released => "released",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// One order's reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// For which order.
    pub order_id: OrderId,
    /// Where it stands.
    pub status: Status,
    /// Grows by one with each change.
    pub version: i64,
    /// What is set aside, or was.
    pub lines: Vec<ReservedLine>,
}

/// What cannot be: a confirmation of an order whose stock was never reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{order_id} is confirmed, but its stock is {}", .status.as_str())]
pub struct NotReserved {
    order_id: OrderId,
    status: Status,
}

impl Reservation {
    /// A reservation of which nothing is known.
    #[must_use]
    pub fn new(order_id: OrderId) -> Self {
        Self { order_id, status: Status::New, version: 0, lines: Vec::new() }
    }

    /// What `event` does to the reservation and to `levels`, and the answer that tells of it; none if it changes
    /// nothing.
    ///
    /// # Errors
    /// [`NotReserved`].
    pub fn apply(&mut self, event: &Event, levels: &mut Levels) -> Result<Option<Event>, NotReserved> {
        match event {
            Event::OrderCreated(order) => Ok(self.reserve(order, levels)),
            Event::OrderConfirmed(_) => self.commit(),
            Event::OrderCancelled(_) => Ok(self.release(levels)),
            Event::OrderCompleted(_)
            | Event::StockReserved(_)
            | Event::StockRejected(_)
            | Event::StockCommitted(_)
            | Event::StockReleased(_)
            | Event::PaymentAuthorized(_)
            | Event::PaymentDeclined(_)
            | Event::PaymentCaptured(_)
            | Event::PaymentCaptureFailed(_)
            | Event::PaymentVoided(_)
            | Event::PaymentRefunded(_) => Ok(None),
        }
    }

    fn reserve(&mut self, order: &OrderCreated, levels: &mut Levels) -> Option<Event> {
        if self.status != Status::New {
            return None;
        }
        let short = short(order, levels);
        if !short.is_empty() || order.lines.is_empty() {
            let version = self.become_(Status::Rejected);
            return Some(Event::StockRejected(StockRejected { order_id: self.order_id, version, short }));
        }
        for line in &order.lines {
            if let Some(available) = levels.get_mut(&line.sku) {
                *available -= i64::from(line.quantity);
            }
        }
        let lines = order.lines.iter();
        self.lines =
            lines.map(|line| ReservedLine { sku: line.sku.clone(), quantity: line.quantity }).collect();
        let version = self.become_(Status::Reserved);
        let lines = self.lines.clone();
        Some(Event::StockReserved(StockReserved { order_id: self.order_id, version, lines }))
    }

    fn commit(&mut self) -> Result<Option<Event>, NotReserved> {
        match self.status {
            Status::Reserved => {
                let version = self.become_(Status::Committed);
                Ok(Some(Event::StockCommitted(StockCommitted { order_id: self.order_id, version })))
            }
            Status::Committed | Status::Released => Ok(None),
            status @ (Status::New | Status::Rejected) => Err(NotReserved { order_id: self.order_id, status }),
        }
    }

    fn release(&mut self, levels: &mut Levels) -> Option<Event> {
        let lines = match self.status {
            Status::Rejected | Status::Released => return None,
            Status::New => Vec::new(),
            Status::Reserved | Status::Committed => self.lines.clone(),
        };
        for line in &lines {
            *levels.entry(line.sku.clone()).or_default() += i64::from(line.quantity);
        }
        let version = self.become_(Status::Released);
        Some(Event::StockReleased(StockReleased { order_id: self.order_id, version, lines }))
    }

    fn become_(&mut self, status: Status) -> i64 {
        self.status = status;
        self.version += 1;
        self.version
    }
}

fn short(order: &OrderCreated, levels: &Levels) -> Vec<RejectedLine> {
    let missing = |line: &events::OrderLine| {
        let available = levels.get(&line.sku).copied().unwrap_or(0);
        let missing = available < i64::from(line.quantity) || line.quantity < 1;
        missing.then(|| RejectedLine { sku: line.sku.clone(), wanted: line.quantity, available })
    };
    order.lines.iter().filter_map(missing).collect()
}

#[cfg(test)]
mod tests {
    use events::{CancelReason, OrderCancelled, OrderConfirmed, OrderLine};

    use super::*;

    const ID: OrderId = OrderId(1);

    fn created(lines: &[(&str, i32)]) -> Event {
        let lines = lines
            .iter()
            .map(|(sku, quantity)| OrderLine {
                sku: Sku((*sku).to_owned()),
                quantity: *quantity,
                unit_price_minor: 100,
            })
            .collect();
        let (currency, payment_token) = ("EUR".to_owned(), String::new());
        Event::OrderCreated(OrderCreated {
            order_id: ID,
            version: 1,
            lines,
            total_minor: 100,
            currency,
            payment_token,
        })
    }

    fn confirmed() -> Event {
        let currency = "EUR".to_owned();
        Event::OrderConfirmed(OrderConfirmed { order_id: ID, version: 2, total_minor: 100, currency })
    }

    fn cancelled() -> Event {
        let reason = CancelReason::Requested;
        Event::OrderCancelled(OrderCancelled { order_id: ID, version: 2, reason })
    }

    fn levels(of: &[(&str, i64)]) -> Levels {
        of.iter().map(|(sku, count)| (Sku((*sku).to_owned()), *count)).collect()
    }

    fn types(events: &[Event], stock: &mut Levels) -> Vec<&'static str> {
        let mut reservation = Reservation::new(ID);
        events
            .iter()
            .filter_map(|event| reservation.apply(event, stock).unwrap())
            .map(|answer| answer.event_type())
            .collect()
    }

    #[test]
    fn all_lines_or_none() {
        let mut stock = levels(&[("latte", 5), ("mocha", 1)]);
        assert_eq!(types(&[created(&[("latte", 2), ("mocha", 2)])], &mut stock), ["stock.rejected"]);
        assert_eq!(stock, levels(&[("latte", 5), ("mocha", 1)]));
        assert_eq!(types(&[created(&[("latte", 5)])], &mut stock), ["stock.reserved"]);
        assert_eq!(stock[&Sku("latte".to_owned())], 0);
        assert_eq!(types(&[created(&[("latte", 1)])], &mut stock), ["stock.rejected"]);
    }

    #[test]
    fn what_is_not_stocked_or_makes_no_sense_is_rejected() {
        let mut stock = levels(&[("latte", 5)]);
        for lines in [&[("tea", 1)][..], &[("latte", 0)], &[("latte", -3)], &[]] {
            assert_eq!(types(&[created(lines)], &mut stock), ["stock.rejected"], "{lines:?}");
        }
        assert_eq!(stock, levels(&[("latte", 5)]));
    }

    #[test]
    fn repeats_change_nothing() {
        let mut stock = levels(&[("latte", 5)]);
        let order = || created(&[("latte", 2)]);
        let events = [order(), order(), confirmed(), confirmed(), order()];
        assert_eq!(types(&events, &mut stock), ["stock.reserved", "stock.committed"]);
        assert_eq!(stock, levels(&[("latte", 3)]));
    }

    #[test]
    fn a_cancel_gives_back_also_what_was_committed_and_once() {
        let order = || created(&[("latte", 2)]);
        for events in
            [vec![order(), cancelled(), cancelled()], vec![order(), confirmed(), cancelled(), confirmed()]]
        {
            let mut stock = levels(&[("latte", 5)]);
            assert_eq!(types(&events, &mut stock).last(), Some(&"stock.released"));
            assert_eq!(stock, levels(&[("latte", 5)]));
        }
    }

    #[test]
    fn a_cancel_that_comes_first_leaves_a_tombstone() {
        let mut stock = levels(&[("latte", 5)]);
        assert_eq!(types(&[cancelled(), created(&[("latte", 2)])], &mut stock), ["stock.released"]);
        assert_eq!(stock, levels(&[("latte", 5)]));
    }

    #[test]
    fn a_confirmation_without_reservation_is_an_error() {
        let mut stock = levels(&[]);
        assert!(Reservation::new(ID).apply(&confirmed(), &mut stock).is_err());
    }
}
