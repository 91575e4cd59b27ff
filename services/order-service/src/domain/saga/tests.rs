//! Every order of every message, with repeats, ends in an allowed state.

use events::{
    PaymentCaptureFailed, PaymentDeclined, PaymentVoided, StockCommitted, StockRejected, StockReleased,
    StockReserved,
};
use proptest::prelude::*;

use super::*;

const ID: OrderId = OrderId(1);

fn saga() -> Saga {
    Saga {
        order_id: ID,
        total_minor: 100,
        currency: "EUR".to_owned(),
        status: OrderStatus::Pending,
        stock: StockAnswer::None,
        payment: PaymentAnswer::None,
        cancel_reason: None,
        version: 1,
    }
}

fn answer(event_type: &str) -> Event {
    let (order_id, version, amount_minor, currency) = (ID, 1, 100, "EUR".to_owned());
    let reason = "no".to_owned();
    match event_type {
        "stock.reserved" => Event::StockReserved(StockReserved { order_id, version, lines: vec![] }),
        "stock.rejected" => Event::StockRejected(StockRejected { order_id, version, short: vec![] }),
        "stock.committed" => Event::StockCommitted(StockCommitted { order_id, version }),
        "stock.released" => Event::StockReleased(StockReleased { order_id, version, lines: vec![] }),
        "payment.authorized" => {
            Event::PaymentAuthorized(PaymentAuthorized { order_id, version, amount_minor, currency })
        }
        "payment.declined" => Event::PaymentDeclined(PaymentDeclined { order_id, version, reason }),
        "payment.captured" => {
            Event::PaymentCaptured(PaymentCaptured { order_id, version, amount_minor, currency })
        }
        "payment.capture_failed" => {
            Event::PaymentCaptureFailed(PaymentCaptureFailed { order_id, version, reason })
        }
        "payment.voided" => Event::PaymentVoided(PaymentVoided { order_id, version }),
        "payment.refunded" => {
            Event::PaymentRefunded(PaymentRefunded { order_id, version, amount_minor, currency })
        }
        other => panic!("no answer {other}"),
    }
}

fn told(saga: &mut Saga, answers: &[&str]) -> Vec<&'static str> {
    let steps = answers.iter().flat_map(|one| saga.apply(Input::Answer(&answer(one))).unwrap());
    steps.map(|step| step.event.event_type()).collect()
}

#[test]
fn both_good_in_either_order_is_confirmed_then_completed() {
    let mut orders = [
        ["stock.reserved", "payment.authorized", "stock.committed", "payment.captured"],
        ["payment.authorized", "stock.reserved", "payment.captured", "stock.committed"],
    ];
    for answers in &mut orders {
        let mut saga = saga();
        assert_eq!(told(&mut saga, answers), ["order.confirmed", "order.completed"]);
        assert_eq!(saga.status, OrderStatus::Completed);
    }
}

#[test]
fn either_bad_cancels_and_later_answers_change_nothing() {
    let cases = [
        (vec!["stock.rejected", "payment.authorized", "payment.voided"], CancelReason::OutOfStock),
        (vec!["stock.reserved", "payment.declined", "stock.released"], CancelReason::PaymentDeclined),
        (
            vec!["stock.reserved", "payment.authorized", "stock.committed", "payment.capture_failed"],
            CancelReason::CaptureFailed,
        ),
    ];
    for (answers, reason) in cases {
        let mut saga = saga();
        assert_eq!(told(&mut saga, &answers).last(), Some(&"order.cancelled"));
        assert_eq!((saga.status, saga.cancel_reason), (OrderStatus::Cancelled, Some(reason)));
        assert!(told(&mut saga, &answers).is_empty(), "repeats");
    }
}

#[test]
fn a_timeout_cancels_only_what_is_pending() {
    let mut saga = saga();
    assert_eq!(saga.apply(Input::TimedOut).unwrap().len(), 1);
    assert_eq!(saga.cancel_reason, Some(CancelReason::TimedOut));
    assert!(told(&mut saga, &["stock.reserved", "payment.authorized"]).is_empty(), "late answers");

    let mut confirmed = self::saga();
    told(&mut confirmed, &["stock.reserved", "payment.authorized"]);
    assert!(confirmed.apply(Input::TimedOut).unwrap().is_empty());
    assert_eq!(confirmed.status, OrderStatus::Confirmed);
}

#[test]
fn a_cancel_works_until_completed() {
    let mut confirmed = saga();
    told(&mut confirmed, &["stock.reserved", "payment.authorized"]);
    assert_eq!(confirmed.apply(Input::CancelRequested).unwrap().len(), 1);
    assert!(confirmed.apply(Input::CancelRequested).unwrap().is_empty());
    assert!(told(&mut confirmed, &["stock.committed", "payment.captured", "payment.refunded"]).is_empty());
    assert_eq!(confirmed.status, OrderStatus::Cancelled);

    let mut completed = saga();
    told(&mut completed, &["stock.reserved", "payment.authorized", "stock.committed", "payment.captured"]);
    assert_eq!(completed.apply(Input::CancelRequested), Err(Refused::Completed(ID)));
}

#[test]
fn another_amount_or_currency_is_refused_and_changes_nothing() {
    for (amount_minor, currency) in [(99, "EUR"), (100, "USD"), (i64::MAX, "EUR"), (-100, "EUR")] {
        let mut saga = saga();
        let currency = currency.to_owned();
        let event =
            Event::PaymentAuthorized(PaymentAuthorized { order_id: ID, version: 1, amount_minor, currency });
        assert!(matches!(saga.apply(Input::Answer(&event)), Err(Refused::Amount { .. })));
        assert_eq!(saga, self::saga());
    }
}

/// The answers that the two other services can give together, each list in its own order.
const WORLDS: [(&[&str], &[&str], &[OrderStatus]); 4] = [
    (
        &["stock.reserved", "stock.committed"],
        &["payment.authorized", "payment.captured"],
        &[OrderStatus::Completed],
    ),
    (&["stock.rejected"], &["payment.authorized", "payment.voided"], &[OrderStatus::Cancelled]),
    (&["stock.reserved", "stock.released"], &["payment.declined"], &[OrderStatus::Cancelled]),
    (
        &["stock.reserved", "stock.committed"],
        &["payment.authorized", "payment.capture_failed"],
        &[OrderStatus::Cancelled],
    ),
];

proptest! {
    /// Any interleaving, any repeats, a cancel or a timeout anywhere: one way through the graph, versions without a
    /// gap, and no step out of a final state.
    #[test]
    fn every_order_of_every_message_ends_in_an_allowed_state(
        world in 0_usize..4,
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        disturbance in proptest::option::of((0_usize..40, any::<bool>())),
    ) {
        let (stock, payment, ends) = WORLDS[world];
        let mut all: Vec<&str> = stock.iter().chain(payment).copied().collect();
        // Repeats and stragglers first, in any order, then everything once so that nothing is missing.
        let mut messages: Vec<&str> = picks.iter().map(|pick| *pick.get(&all)).collect();
        messages.append(&mut all);

        let mut saga = saga();
        let mut edges = Vec::new();
        for (position, message) in messages.iter().enumerate() {
            if let Some((at, cancel)) = disturbance && at == position {
                let input = if cancel { Input::CancelRequested } else { Input::TimedOut };
                edges.extend(saga.apply(input).unwrap_or_default());
            }
            edges.extend(saga.apply(Input::Answer(&answer(message))).unwrap());
        }
        prop_assert!(edges.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].version < pair[1].version));
        prop_assert!(edges.iter().all(|edge| !matches!(edge.from, OrderStatus::Cancelled | OrderStatus::Completed)));
        if disturbance.is_none() {
            prop_assert!(ends.contains(&saga.status), "{:?} after {messages:?}", saga.status);
        }
        prop_assert!(matches!(saga.status, OrderStatus::Cancelled | OrderStatus::Completed));
        prop_assert_eq!(saga.status == OrderStatus::Cancelled, saga.cancel_reason.is_some());
    }
}
