//! Reserve all lines of an order, or none.

use std::collections::BTreeMap;

use events::{Event, OrderCreated, RejectedLine, ReservedLine, Sku, StockRejected, StockReserved};

/// How many of each sku are available. A sku that is not here is none.
pub type Levels = BTreeMap<Sku, i64>;

/// What became of an order's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// All are set aside.
    Reserved(Vec<ReservedLine>),
    /// None is, since these could not be met.
    Rejected(Vec<RejectedLine>),
}

/// Decides on `order` and takes what it reserves out of `levels`.
pub fn reserve(order: &OrderCreated, levels: &mut Levels) -> Decision {
    let short: Vec<RejectedLine> = order
        .lines
        .iter()
        .filter_map(|line| {
            let available = levels.get(&line.sku).copied().unwrap_or(0);
            let missing = available < i64::from(line.quantity) || line.quantity < 1;
            missing.then(|| RejectedLine { sku: line.sku.clone(), wanted: line.quantity, available })
        })
        .collect();
    if !short.is_empty() || order.lines.is_empty() {
        return Decision::Rejected(short);
    }
    for line in &order.lines {
        if let Some(available) = levels.get_mut(&line.sku) {
            *available -= i64::from(line.quantity);
        }
    }
    let lines = order.lines.iter();
    Decision::Reserved(
        lines.map(|line| ReservedLine { sku: line.sku.clone(), quantity: line.quantity }).collect(),
    )
}

impl Decision {
    /// The event that tells of this decision on `order`.
    #[must_use]
    pub fn event(&self, order: &OrderCreated) -> Event {
        let (order_id, version) = (order.order_id, 1);
        match self {
            Self::Reserved(lines) => {
                Event::StockReserved(StockReserved { order_id, version, lines: lines.clone() })
            }
            Self::Rejected(short) => {
                Event::StockRejected(StockRejected { order_id, version, short: short.clone() })
            }
        }
    }

    /// As it stands in the database.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Reserved(_) => "reserved",
            Self::Rejected(_) => "rejected",
        }
    }
}

#[cfg(test)]
mod tests {
    use events::{OrderId, OrderLine};

    use super::*;

    fn order(lines: &[(&str, i32)]) -> OrderCreated {
        let lines = lines
            .iter()
            .map(|(sku, quantity)| OrderLine {
                sku: Sku((*sku).to_owned()),
                quantity: *quantity,
                unit_price_minor: 100,
            })
            .collect();
        let currency = "EUR".to_owned();
        OrderCreated { order_id: OrderId(1), version: 1, lines, total_minor: 100, currency }
    }

    fn levels(of: &[(&str, i64)]) -> Levels {
        of.iter().map(|(sku, count)| (Sku((*sku).to_owned()), *count)).collect()
    }

    #[test]
    fn all_lines_or_none() {
        let mut stock = levels(&[("latte", 5), ("mocha", 1)]);
        let decision = reserve(&order(&[("latte", 2), ("mocha", 2)]), &mut stock);
        assert!(
            matches!(&decision, Decision::Rejected(short) if short.len() == 1 && short[0].available == 1)
        );
        assert_eq!(stock, levels(&[("latte", 5), ("mocha", 1)]));

        assert!(matches!(reserve(&order(&[("latte", 5)]), &mut stock), Decision::Reserved(_)));
        assert_eq!(stock[&Sku("latte".to_owned())], 0);
        assert!(matches!(reserve(&order(&[("latte", 1)]), &mut stock), Decision::Rejected(_)));
    }

    #[test]
    fn what_is_not_stocked_or_makes_no_sense_is_rejected() {
        let mut stock = levels(&[("latte", 5)]);
        for lines in [&[("tea", 1)][..], &[("latte", 0)], &[("latte", -3)], &[]] {
            assert!(matches!(reserve(&order(lines), &mut stock), Decision::Rejected(_)), "{lines:?}");
        }
        assert_eq!(stock, levels(&[("latte", 5)]));
    }
}
