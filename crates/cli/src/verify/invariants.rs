//! The invariants, each over the evidence alone.

use std::collections::{BTreeMap, BTreeSet};

use events::topic;
use serde::Serialize;
use uuid::Uuid;

use super::evidence::{Booked, Evidence, Record};

/// What became of one invariant.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) invariant: &'static str,
    /// How many things it was held against. An invariant over nothing is not shown to hold.
    pub(crate) looked_at: usize,
    /// Counterexamples.
    pub(crate) broken: Vec<String>,
}

/// What is known of an invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Broken,
    /// There was nothing to hold it against.
    Unknown,
}

impl Finding {
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.broken.len(), self.looked_at) {
            (0, 0) => Verdict::Unknown,
            (0, _) => Verdict::Holds,
            _ => Verdict::Broken,
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.verdict() == Verdict::Holds
    }
}

/// What order, reservation and payment may be together at rest.
const TRIPLES: [(&str, &str, &[&str]); 4] = [
    ("completed", "committed", &["captured"]),
    ("cancelled", "released", &["voided", "declined", "refunded", "cancelled"]),
    ("cancelled", "rejected", &["voided", "declined", "refunded", "cancelled"]),
    // A timeout before anything was heard of the order.
    ("cancelled", "", &["", "cancelled", "voided", "declined", "refunded"]),
];

pub(crate) fn check(evidence: &Evidence) -> Vec<Finding> {
    vec![
        no_lost_event(evidence),
        no_phantom(evidence),
        copies_agree(evidence),
        order_per_aggregate(evidence),
        effect_once(evidence),
        stock_adds_up(evidence),
        money_adds_up(evidence),
        no_double_capture(evidence),
        none_stuck(evidence),
        drained(evidence),
    ]
}

fn finding(invariant: &'static str, looked_at: usize, broken: Vec<String>) -> Finding {
    Finding { invariant, looked_at, broken }
}

fn seen(evidence: &Evidence) -> BTreeSet<Uuid> {
    evidence.records.iter().filter_map(|record| record.event_id).collect()
}

fn no_lost_event(evidence: &Evidence) -> Finding {
    let seen = seen(evidence);
    let lost = evidence
        .rows
        .iter()
        .filter(|row| row.published && !seen.contains(&row.event_id))
        .map(|row| format!("{} outbox row {} is marked and in no topic", row.source, row.id));
    let told: BTreeSet<&str> = evidence
        .rows
        .iter()
        .filter(|row| row.event_type == "order.created")
        .map(|row| row.aggregate.as_str())
        .collect();
    let untold = evidence
        .orders
        .iter()
        .filter(|order| !told.contains(order.id.as_str()))
        .map(|order| format!("{} is stored and no outbox row tells of it", order.id));
    let lost = lost.chain(untold).collect();
    finding("no lost event: each order told, what is marked in Kafka", evidence.rows.len(), lost)
}

fn no_phantom(evidence: &Evidence) -> Finding {
    let rows: BTreeMap<Uuid, (&str, &str)> = evidence
        .rows
        .iter()
        .map(|row| (row.event_id, (row.topic.as_str(), row.aggregate.as_str())))
        .collect();
    let phantom = evidence
        .records
        .iter()
        .filter(|record| {
            let row = record.event_id.and_then(|id| rows.get(&id));
            row != Some(&(record.topic.as_str(), record.key.as_str()))
        })
        .map(|record| format!("{} is of no outbox row", record.place));
    finding("no phantom: what is in Kafka was committed", evidence.records.len(), phantom.collect())
}

fn copies_agree(evidence: &Evidence) -> Finding {
    let mut first: BTreeMap<Uuid, &Record> = BTreeMap::new();
    let mut broken = Vec::new();
    for record in &evidence.records {
        let Some(id) = record.event_id else { continue };
        let one = *first.entry(id).or_insert(record);
        let same =
            one.payload == record.payload && one.key == record.key && one.partition == record.partition;
        if !same {
            broken.push(format!("{} and {} are one event and differ", one.place, record.place));
        }
    }
    finding("copies agree: one event, one content, one partition", first.len(), broken)
}

fn order_per_aggregate(evidence: &Evidence) -> Finding {
    let mut last: BTreeMap<(&str, &str, &str), i64> = BTreeMap::new();
    let mut known: BTreeSet<Uuid> = BTreeSet::new();
    let mut broken = Vec::new();
    for record in &evidence.records {
        if !record.event_id.is_some_and(|id| known.insert(id)) {
            continue;
        }
        let aggregate = (record.topic.as_str(), record.source.as_str(), record.key.as_str());
        let before = last.insert(aggregate, record.id);
        if before.is_some_and(|before| before > record.id) {
            broken.push(format!(
                "{}: outbox id {} after {}",
                record.place,
                record.id,
                before.unwrap_or_default()
            ));
        }
    }
    finding("order per aggregate: first occurrences by outbox id", last.len(), broken)
}

fn effect_once(evidence: &Evidence) -> Finding {
    let reads: [(&str, &[&str]); 3] = [
        ("order-service", &[topic::INVENTORY, topic::PAYMENTS]),
        ("inventory-service", &[topic::ORDERS]),
        ("payment-service", &[topic::ORDERS]),
    ];
    let (mut looked_at, mut broken) = (0, Vec::new());
    for (consumer, topics) in reads {
        let told: BTreeSet<Uuid> = evidence
            .records
            .iter()
            .filter(|record| topics.contains(&record.topic.as_str()))
            .filter_map(|record| record.event_id)
            .collect();
        let empty = BTreeSet::new();
        let processed = evidence.processed.get(consumer).unwrap_or(&empty);
        // A dead letter may be waited for, or redriven and applied.
        let expected: BTreeSet<&Uuid> = told.iter().filter(|id| !evidence.dead.contains(id)).collect();
        looked_at += expected.len();
        let missing = expected.iter().filter(|id| !processed.contains(id));
        broken.extend(missing.map(|id| format!("{consumer} has not applied {id}")));
        broken
            .extend(processed.difference(&told).map(|id| format!("{consumer} has applied {id} of no topic")));
    }
    broken.extend(told_twice(evidence));
    finding("effect once: each event applied, each answer given once", looked_at, broken)
}

/// Each event of an order is the one effect of one handler, and no order has two of a type: a second is work done
/// twice, also where the business tables' keys have hidden it.
fn told_twice(evidence: &Evidence) -> impl Iterator<Item = String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in evidence.rows.iter().filter(|row| row.event_type != "unknown") {
        *counts.entry((&row.aggregate, &row.event_type)).or_default() += 1;
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|((order, event), count)| format!("{order} has {count} times {event}"))
}

fn stock_adds_up(evidence: &Evidence) -> Finding {
    let broken = evidence.stock.iter().filter_map(|stock| {
        let there = stock.available + stock.taken;
        let wanted = stock.opening + stock.restocked;
        (there != wanted || stock.available < 0).then(|| {
            format!("{}: {} available and {} taken, of {wanted}", stock.sku, stock.available, stock.taken)
        })
    });
    finding("stock adds up: opening + restocked = available + taken", evidence.stock.len(), broken.collect())
}

fn money_adds_up(evidence: &Evidence) -> Finding {
    let none = Booked::default();
    let mut broken: Vec<String> = evidence
        .orders
        .iter()
        .filter_map(|order| {
            let booked = evidence.booked.get(&order.id).unwrap_or(&none);
            let wanted = if order.status == "completed" { order.total_minor } else { 0 };
            let currency_is_good = booked.currencies.iter().all(|currency| *currency == order.currency);
            (booked.net_minor != wanted || booked.held != 0 || !currency_is_good).then(|| {
                format!(
                    "{} is {}: {} taken, {wanted} due, {} still held",
                    order.id, order.status, booked.net_minor, booked.held
                )
            })
        })
        .collect();
    let known: BTreeSet<&str> = evidence.orders.iter().map(|order| order.id.as_str()).collect();
    let strangers = evidence.booked.keys().filter(|id| !known.contains(id.as_str()));
    broken.extend(strangers.map(|id| format!("the provider has booked for {id}, which is no order")));
    finding("money adds up: taken is due, nothing is held", evidence.orders.len(), broken)
}

fn no_double_capture(evidence: &Evidence) -> Finding {
    let broken =
        evidence.booked.iter().filter(|(_, booked)| booked.captures > 1 || booked.authorizations > 1);
    let broken = broken.map(|(id, booked)| {
        format!("{id}: {} authorizations, {} captures", booked.authorizations, booked.captures)
    });
    finding("no double capture: one of each an order", evidence.booked.len(), broken.collect())
}

fn none_stuck(evidence: &Evidence) -> Finding {
    let broken = evidence.orders.iter().filter_map(|order| {
        let reservation = evidence.reservations.get(&order.id).map_or("", String::as_str);
        let payment = evidence.payments.get(&order.id).map_or("", String::as_str);
        let allowed = TRIPLES.iter().any(|(status, stock, payments)| {
            *status == order.status && *stock == reservation && payments.contains(&payment)
        });
        (!allowed)
            .then(|| format!("{}: {}, stock {reservation:?}, payment {payment:?}", order.id, order.status))
    });
    finding("none stuck: order, stock and payment agree at rest", evidence.orders.len(), broken.collect())
}

fn drained(evidence: &Evidence) -> Finding {
    let pending = evidence
        .rows
        .iter()
        .filter(|row| !row.published)
        .map(|row| format!("{} outbox row {} is not published", row.source, row.id));
    let broken = pending.chain(evidence.open_calls.iter().cloned()).collect();
    finding("drained: no row pending, no call open", evidence.rows.len(), broken)
}

#[cfg(test)]
mod tests;
