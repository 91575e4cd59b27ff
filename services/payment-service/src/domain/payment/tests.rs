//! The way of the money, with cancels at every point.

use events::{CancelReason, OrderCancelled, OrderConfirmed, OrderCreated};

use super::*;

const ID: OrderId = OrderId(1);

fn created(total_minor: i64) -> Event {
    let (currency, payment_token) = ("EUR".to_owned(), "tok".to_owned());
    Event::OrderCreated(OrderCreated {
        order_id: ID,
        version: 1,
        lines: vec![],
        total_minor,
        currency,
        payment_token,
    })
}

fn confirmed() -> Event {
    let currency = "EUR".to_owned();
    Event::OrderConfirmed(OrderConfirmed { order_id: ID, version: 2, total_minor: 100, currency })
}

fn cancelled() -> Event {
    Event::OrderCancelled(OrderCancelled { order_id: ID, version: 2, reason: CancelReason::Requested })
}

fn begun() -> Payment {
    Payment::begin(&created(100)).unwrap().unwrap().0
}

fn done() -> Outcome {
    Outcome::Done(Uuid::nil())
}

fn refused() -> Outcome {
    Outcome::Refused("no".to_owned())
}

fn told(next: Next) -> (Option<&'static str>, Option<Operation>) {
    (next.event.map(|event| event.event_type()), next.call)
}

#[test]
fn the_good_way() {
    let mut payment = begun();
    assert_eq!(told(payment.settle(&done()).unwrap()), (Some("payment.authorized"), None));
    assert_eq!(told(payment.hear(&confirmed()).unwrap()), (None, Some(Operation::Capture)));
    assert_eq!(told(payment.hear(&confirmed()).unwrap()), (None, None), "a repeat makes no second call");
    assert_eq!(told(payment.settle(&done()).unwrap()), (Some("payment.captured"), None));
    assert_eq!(told(payment.settle(&done()).unwrap()), (None, None), "a repeat tells nothing again");
    assert_eq!(payment.status, Status::Captured);
}

#[test]
fn a_cancel_undoes_whatever_was_done_at_whatever_point() {
    // Authorized, then cancelled.
    let mut payment = begun();
    payment.settle(&done()).unwrap();
    assert_eq!(told(payment.hear(&cancelled()).unwrap()), (None, Some(Operation::Void)));
    assert_eq!(told(payment.settle(&done()).unwrap()), (Some("payment.voided"), None));

    // Cancelled while the authorization is under way.
    let mut payment = begun();
    assert_eq!(told(payment.hear(&cancelled()).unwrap()), (None, None));
    assert_eq!(told(payment.settle(&done()).unwrap()), (Some("payment.authorized"), Some(Operation::Void)));
    assert_eq!(payment.status, Status::Voiding);
    let mut payment = begun();
    payment.hear(&cancelled()).unwrap();
    assert_eq!(told(payment.settle(&refused()).unwrap()), (Some("payment.declined"), None));

    // Cancelled while the capture is under way.
    let mut payment = begun();
    payment.settle(&done()).unwrap();
    payment.hear(&confirmed()).unwrap();
    payment.hear(&cancelled()).unwrap();
    assert_eq!(told(payment.settle(&done()).unwrap()), (Some("payment.captured"), Some(Operation::Refund)));
    assert_eq!(told(payment.settle(&done()).unwrap()), (Some("payment.refunded"), None));
    assert_eq!(told(payment.hear(&cancelled()).unwrap()), (None, None), "and once only");

    // The capture is refused for good, and the order cancelled for it.
    let mut payment = begun();
    payment.settle(&done()).unwrap();
    payment.hear(&confirmed()).unwrap();
    assert_eq!(told(payment.settle(&refused()).unwrap()), (Some("payment.capture_failed"), None));
    assert_eq!(told(payment.hear(&cancelled()).unwrap()), (None, Some(Operation::Void)));
}

#[test]
fn only_an_authorization_that_is_to_be_undone_is_wasted() {
    let mut payment = begun();
    assert_eq!(payment.wasted(), None);
    payment.withdraw();
    assert_eq!(payment.status, Status::Authorizing);
    payment.hear(&cancelled()).unwrap();
    assert_eq!(payment.wasted(), Some(Operation::Authorize));
    payment.withdraw();
    assert_eq!((payment.status, payment.wasted()), (Status::Cancelled, None));
    assert_eq!(payment.settle(&done()).unwrap(), Next::default(), "an answer to no call");
}

#[test]
fn a_cancel_that_comes_first_leaves_a_payment_that_never_begins() {
    let (mut payment, next) = Payment::begin(&cancelled()).unwrap().unwrap();
    assert_eq!(next, Next::default());
    assert_eq!(payment.hear(&created(100)).unwrap(), Next::default());
    assert_eq!(payment.status, Status::Cancelled);
}

#[test]
fn what_cannot_be_is_an_error() {
    for amount in [0, -1, i64::MIN] {
        assert!(matches!(Payment::begin(&created(amount)), Err(Impossible::Amount(..))));
    }
    assert!(Payment::begin(&confirmed()).is_err());
    assert!(begun().hear(&confirmed()).is_err());
    let mut payment = begun();
    payment.settle(&done()).unwrap();
    payment.hear(&cancelled()).unwrap();
    assert!(matches!(payment.settle(&refused()), Err(Impossible::NotUndone(..))));
}
