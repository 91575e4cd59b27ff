//! The checker is checked: a sound history passes, and one wound for each invariant is found by that invariant.

use super::super::evidence::{Order, Row, Stock};
use super::*;

/// One completed order and one cancelled one, everything in its place.
fn sound() -> Evidence {
    let row = |source: &str, id, order: &str, topic: &str, event_type: &str, event| Row {
        source: source.to_owned(),
        id,
        aggregate: order.to_owned(),
        topic: topic.to_owned(),
        event_id: Uuid::from_u128(event),
        event_type: event_type.to_owned(),
        published: true,
    };
    let rows = vec![
        row("order-service", 1, "order-1", topic::ORDERS, "order.created", 1),
        row("order-service", 2, "order-1", topic::ORDERS, "order.completed", 2),
        row("order-service", 3, "order-2", topic::ORDERS, "order.created", 3),
        row("inventory-service", 1, "order-1", topic::INVENTORY, "stock.committed", 4),
        row("payment-service", 1, "order-1", topic::PAYMENTS, "payment.captured", 5),
    ];
    let records = rows
        .iter()
        .zip(0..)
        .map(|(row, offset)| Record {
            place: format!("{}/0/{offset}", row.topic),
            topic: row.topic.clone(),
            partition: 0,
            source: row.source.clone(),
            id: row.id,
            event_id: Some(row.event_id),
            key: row.aggregate.clone(),
            payload: row.event_id.as_bytes().to_vec(),
        })
        .collect();
    let ids = |events: &[u128]| events.iter().map(|event| Uuid::from_u128(*event)).collect::<BTreeSet<_>>();
    let order = |id: &str, status: &str| Order {
        id: id.to_owned(),
        status: status.to_owned(),
        total_minor: 500,
        currency: "EUR".to_owned(),
    };
    let pairs = |pairs: [(&str, &str); 2]| {
        pairs.into_iter().map(|(order, status)| (order.to_owned(), status.to_owned())).collect()
    };
    let booked = |captures, net_minor| Booked {
        authorizations: 1,
        held: 0,
        captures,
        net_minor,
        currencies: BTreeSet::from(["EUR".to_owned()]),
    };
    Evidence {
        rows,
        records,
        processed: BTreeMap::from([
            ("order-service", ids(&[4, 5])),
            ("inventory-service", ids(&[1, 2, 3])),
            ("payment-service", ids(&[1, 2, 3])),
        ]),
        dead: BTreeSet::new(),
        orders: vec![order("order-1", "completed"), order("order-2", "cancelled")],
        reservations: pairs([("order-1", "committed"), ("order-2", "released")]),
        payments: pairs([("order-1", "captured"), ("order-2", "voided")]),
        stock: vec![Stock { sku: "latte".to_owned(), opening: 10, available: 9, restocked: 1, taken: 2 }],
        booked: BTreeMap::from([
            ("order-1".to_owned(), booked(1, 500)),
            ("order-2".to_owned(), booked(0, 0)),
        ]),
        open_calls: Vec::new(),
    }
}

/// The invariants that `wound` breaks.
fn broken_by(wound: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = sound();
    wound(&mut evidence);
    let findings = check(&evidence);
    findings.iter().filter(|finding| !finding.holds()).map(|finding| finding.invariant).collect()
}

#[test]
fn a_sound_history_passes_and_each_invariant_has_something_to_look_at() {
    assert!(broken_by(|_| {}).is_empty());
    assert!(check(&sound()).iter().all(|finding| finding.looked_at > 0));
}

/// What could not be held against anything is not shown to hold.
#[test]
fn nothing_to_look_at_is_no_pass() {
    let broken = broken_by(|evidence| evidence.stock.clear());
    assert_eq!(broken, ["stock adds up: opening + restocked = available + taken"]);
    let mut evidence = sound();
    evidence.stock.clear();
    assert!(check(&evidence).iter().any(|finding| finding.verdict() == Verdict::Unknown));
}

#[test]
fn a_repeat_is_no_wound() {
    let repeated = broken_by(|evidence| {
        let first = &evidence.records[0];
        let repeat = Record {
            place: "again".to_owned(),
            topic: first.topic.clone(),
            source: first.source.clone(),
            key: first.key.clone(),
            payload: first.payload.clone(),
            ..*first
        };
        evidence.records.push(repeat);
    });
    assert!(repeated.is_empty(), "{repeated:?}");
}

type Wound = fn(&mut Evidence);

/// What would break each invariant, by the fault of the product that would cause it.
const WOUNDS: [(&str, &str, Wound); 17] = [
    ("no lost event", "mark before ack", |evidence| {
        evidence.records.remove(4);
    }),
    ("no lost event", "store an order and tell nobody", |evidence| {
        evidence.orders.push(Order { id: "order-3".to_owned(), ..evidence.orders[1].clone() });
    }),
    ("no phantom", "publish what was rolled back", |evidence| {
        evidence.rows.remove(4);
    }),
    ("no phantom", "publish under another key", |evidence| evidence.records[4].key = "order-2".to_owned()),
    ("copies agree", "another content in the repeat", |evidence| {
        evidence.records[1].event_id = evidence.records[0].event_id;
    }),
    ("order per aggregate", "lock rows instead of shards", |evidence| evidence.records.swap(0, 1)),
    ("effect once", "commit the offset before the effect", |evidence| {
        evidence.processed.insert("inventory-service", BTreeSet::new());
    }),
    ("effect once", "apply what was never told", |evidence| {
        evidence.processed.insert("order-service", (0..9).map(Uuid::from_u128).collect());
    }),
    ("effect once", "answer twice", |evidence| {
        evidence.rows[1].event_type = "order.created".to_owned();
    }),
    ("stock adds up", "release twice", |evidence| evidence.stock[0].available += 1),
    ("stock adds up", "oversell", |evidence| {
        evidence.stock[0].available = -1;
        evidence.stock[0].taken = 12;
    }),
    ("money adds up", "refund twice", |evidence| book(evidence, "order-1").net_minor = 0),
    ("money adds up", "forget to let go", |evidence| book(evidence, "order-2").held = 1),
    ("money adds up", "charge for no order", |evidence| {
        evidence.booked.insert("order-9".to_owned(), Booked::default());
    }),
    ("no double capture", "a new key for each try", |evidence| book(evidence, "order-1").captures = 2),
    ("none stuck", "swallow an answer", |evidence| evidence.orders[0].status = "confirmed".to_owned()),
    ("drained", "give up after some tries", |evidence| evidence.rows[0].published = false),
];

fn book<'e>(evidence: &'e mut Evidence, order: &str) -> &'e mut Booked {
    evidence.booked.entry(order.to_owned()).or_default()
}

#[test]
fn each_wound_is_found_by_its_invariant() {
    for (invariant, fault, wound) in WOUNDS {
        let broken = broken_by(wound);
        assert!(broken.iter().any(|found| found.starts_with(invariant)), "{fault}: only {broken:?}");
    }
    let wounded: BTreeSet<&str> = WOUNDS.iter().map(|(invariant, _, _)| *invariant).collect();
    assert_eq!(wounded.len(), check(&sound()).len(), "an invariant has no wound");
}
