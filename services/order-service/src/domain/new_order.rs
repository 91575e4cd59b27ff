//! An order as it is asked for: checked when it is made, priced from the menu.

use std::collections::{BTreeMap, BTreeSet};

use events::Sku;
use sha2::{Digest, Sha256};

use super::{Invalid, PricedOrder};

const MAX_CUSTOMER_CHARS: usize = 200;
const MAX_TOKEN_CHARS: usize = 100;
const MAX_LINES: usize = 100;
const MAX_QUANTITY: i32 = 1000;
const MAX_SKU_BYTES: usize = 64;
const KEY_LENGTH: std::ops::RangeInclusive<usize> = 16..=255;

/// One line as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLine {
    /// What.
    pub sku: Sku,
    /// How many.
    pub quantity: i32,
}

/// What the menu says of a sku.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuItem {
    /// Minor units; above zero.
    pub price_minor: i64,
    /// ISO 4217.
    pub currency: String,
}

/// An order that may be placed, if the menu has all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    customer: String,
    lines: Vec<RequestedLine>,
    idempotency_key: String,
    payment_token: String,
}

impl NewOrder {
    /// Checks what can be checked without the menu.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn parse(
        customer: String,
        lines: Vec<RequestedLine>,
        idempotency_key: String,
        payment_token: String,
    ) -> Result<Self, Invalid> {
        check_text("customer", &customer, MAX_CUSTOMER_CHARS)?;
        if lines.is_empty() || lines.len() > MAX_LINES {
            return Err(Invalid::new("lines", format!("must be 1 to {MAX_LINES}, not {}", lines.len())));
        }
        let mut seen = BTreeSet::new();
        for (position, line) in lines.iter().enumerate() {
            check_text(&format!("lines[{position}].sku"), &line.sku.0, MAX_SKU_BYTES)?;
            if !(1..=MAX_QUANTITY).contains(&line.quantity) {
                let problem = format!("must be 1 to {MAX_QUANTITY}, not {}", line.quantity);
                return Err(Invalid::new(format!("lines[{position}].quantity"), problem));
            }
            if !seen.insert(&line.sku) {
                let problem = format!("`{}` stands in an earlier line; raise its quantity", line.sku);
                return Err(Invalid::new(format!("lines[{position}].sku"), problem));
            }
        }
        let visible = idempotency_key.bytes().all(|byte| byte.is_ascii_graphic());
        if !visible || !KEY_LENGTH.contains(&idempotency_key.len()) {
            let problem = "must be 16 to 255 visible ASCII characters";
            return Err(Invalid::new("idempotency_key", problem));
        }
        if !payment_token.is_empty() {
            check_text("payment_token", &payment_token, MAX_TOKEN_CHARS)?;
        }
        Ok(Self { customer, lines, idempotency_key, payment_token })
    }

    /// Which skus the menu is asked for.
    #[must_use]
    pub fn skus(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.sku.0.clone()).collect()
    }

    /// Names the request.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// Tells two bodies under one idempotency key apart.
    #[must_use]
    pub fn fingerprint(&self) -> Vec<u8> {
        let mut hash = Sha256::new();
        // Each text with its length, so that no two bodies run into the same bytes.
        let mut text = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        };
        text(&self.customer);
        text(&self.payment_token);
        for line in &self.lines {
            text(&line.sku.0);
            text(&line.quantity.to_string());
        }
        hash.finalize().to_vec()
    }

    /// Prices the order from `menu`.
    ///
    /// # Errors
    /// A sku that the menu does not have, two currencies, or a sum beyond all measure.
    pub fn price(self, menu: &BTreeMap<Sku, MenuItem>) -> Result<PricedOrder, Invalid> {
        let mut priced = Vec::with_capacity(self.lines.len());
        let mut total: i64 = 0;
        let mut currency: Option<String> = None;
        for (position, line) in self.lines.into_iter().enumerate() {
            let field = format!("lines[{position}].sku");
            let Some(item) = menu.get(&line.sku) else {
                return Err(Invalid::new(field, format!("`{}` is not on the menu", line.sku)));
            };
            if currency.get_or_insert_with(|| item.currency.clone()) != &item.currency {
                return Err(Invalid::new(field, "is sold in another currency than the lines before"));
            }
            let sum = item.price_minor.checked_mul(i64::from(line.quantity));
            total = sum
                .and_then(|sum| total.checked_add(sum))
                .ok_or_else(|| Invalid::new("lines", "cost more than can be counted"))?;
            priced.push(events::OrderLine {
                sku: line.sku,
                quantity: line.quantity,
                unit_price_minor: item.price_minor,
            });
        }
        let currency = currency.ok_or_else(|| Invalid::new("lines", "must not be empty"))?;
        let (customer, payment_token) = (self.customer, self.payment_token);
        Ok(PricedOrder { customer, lines: priced, total_minor: total, currency, payment_token })
    }
}

/// Postgres takes no U+0000, and a control character has no place in a name or a log.
fn check_text(field: &str, text: &str, max_chars: usize) -> Result<(), Invalid> {
    let count = text.chars().count();
    if text.trim().is_empty() {
        Err(Invalid::new(field, "must not be empty"))
    } else if count > max_chars {
        Err(Invalid::new(field, format!("must be at most {max_chars} characters, not {count}")))
    } else if text.chars().any(char::is_control) {
        Err(Invalid::new(field, "must not hold control characters such as U+0000"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef";

    fn line(sku: &str, quantity: i32) -> RequestedLine {
        RequestedLine { sku: Sku(sku.to_owned()), quantity }
    }

    fn item(price_minor: i64, currency: &str) -> MenuItem {
        MenuItem { price_minor, currency: currency.to_owned() }
    }

    fn refused(customer: &str, lines: Vec<RequestedLine>, key: &str) -> String {
        NewOrder::parse(customer.to_owned(), lines, key.to_owned(), String::new()).unwrap_err().field
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let good = || vec![line("latte", 1)];
        assert_eq!(refused("", good(), KEY), "customer");
        assert_eq!(refused(" \t", good(), KEY), "customer");
        assert_eq!(refused("a\0b", good(), KEY), "customer");
        assert_eq!(refused(&"x".repeat(1_000_000), good(), KEY), "customer");
        assert_eq!(refused("ada", vec![], KEY), "lines");
        let many = (0..101).map(|n| line(&format!("sku-{n}"), 1)).collect();
        assert_eq!(refused("ada", many, KEY), "lines");
        for quantity in [0, -1, 1001, i32::MAX, i32::MIN] {
            let lines = vec![line("latte", 1), line("mocha", quantity)];
            assert_eq!(refused("ada", lines, KEY), "lines[1].quantity");
        }
        assert_eq!(refused("ada", vec![line("latte", 1), line("latte", 2)], KEY), "lines[1].sku");
        assert_eq!(refused("ada", vec![line("la\0tte", 1)], KEY), "lines[0].sku");
        for key in ["", "short", "with space in the middle", "sch\u{f6}n-0123456789abcdef", &"k".repeat(256)]
        {
            assert_eq!(refused("ada", good(), key), "idempotency_key", "{key}");
        }
    }

    #[test]
    fn prices_add_up_with_checked_arithmetic() {
        let order = |lines| NewOrder::parse("ada".to_owned(), lines, KEY.to_owned(), String::new()).unwrap();
        let menu = BTreeMap::from([
            (Sku("latte".to_owned()), item(420, "EUR")),
            (Sku("mocha".to_owned()), item(450, "EUR")),
            (Sku("gold".to_owned()), item(i64::MAX / 2, "EUR")),
            (Sku("bagel".to_owned()), item(1, "USD")),
        ]);
        let priced = order(vec![line("latte", 2), line("mocha", 1)]).price(&menu).unwrap();
        assert_eq!((priced.total_minor, priced.currency.as_str()), (1290, "EUR"));
        assert_eq!(order(vec![line("gold", 3)]).price(&menu).unwrap_err().field, "lines");
        assert_eq!(order(vec![line("tea", 1)]).price(&menu).unwrap_err().field, "lines[0].sku");
        let mixed = order(vec![line("latte", 1), line("bagel", 1)]);
        assert_eq!(mixed.price(&menu).unwrap_err().field, "lines[1].sku");
    }

    #[test]
    fn fingerprints_tell_bodies_apart() {
        let order = |customer: &str, lines| {
            NewOrder::parse(customer.to_owned(), lines, KEY.to_owned(), String::new()).unwrap().fingerprint()
        };
        let base = order("ada", vec![line("latte", 1), line("mocha", 2)]);
        assert_eq!(base, order("ada", vec![line("latte", 1), line("mocha", 2)]));
        assert_ne!(base, order("adal", vec![line("atte", 1), line("mocha", 2)]));
        assert_ne!(base, order("ada", vec![line("latte", 2), line("mocha", 1)]));
        assert_ne!(base, order("bob", vec![line("latte", 1), line("mocha", 2)]));
    }
}
