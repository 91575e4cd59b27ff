//! What is wrong with a request is said by field, and nothing is stored.

use proto::order::v1::{GetOrderRequest, ListOrdersRequest, PlaceOrderRequest};
use tonic::Code;

use crate::shop::{Shop, order};

fn bad_orders() -> Vec<(&'static str, PlaceOrderRequest)> {
    let good = || order(&[("latte", 1)]);
    let many: Vec<(String, i32)> = (0..101).map(|n| (format!("sku-{n}"), 1)).collect();
    let many: Vec<(&str, i32)> = many.iter().map(|(sku, quantity)| (sku.as_str(), *quantity)).collect();
    vec![
        ("lines[1].sku", order(&[("latte", 1), ("unobtainium", 1)])),
        ("lines[0].quantity", order(&[("latte", 0)])),
        ("lines[0].quantity", order(&[("latte", -5)])),
        ("lines[0].quantity", order(&[("latte", i32::MAX)])),
        ("lines[1].sku", order(&[("latte", 1), ("latte", 1)])),
        ("lines", order(&[])),
        ("lines", order(&many)),
        ("lines[0].sku", order(&[("", 1)])),
        ("lines[0].sku", order(&[("lat\0te", 1)])),
        ("customer", PlaceOrderRequest { customer: String::new(), ..good() }),
        ("customer", PlaceOrderRequest { customer: "a\0b".to_owned(), ..good() }),
        ("customer", PlaceOrderRequest { customer: "x".repeat(1_000_000), ..good() }),
        ("idempotency_key", PlaceOrderRequest { idempotency_key: String::new(), ..good() }),
        ("idempotency_key", PlaceOrderRequest { idempotency_key: "a b".repeat(10), ..good() }),
        ("idempotency_key", PlaceOrderRequest { idempotency_key: "k".repeat(300), ..good() }),
    ]
}

#[tokio::test]
async fn each_bad_field_is_named_and_nothing_is_stored() {
    let shop = Shop::open().await;
    for (field, request) in bad_orders() {
        let status = shop.place(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        assert!(status.message().starts_with(&format!("{field}:")), "{field}: {}", status.message());
    }
    assert_eq!(shop.rows().await, (0, 0, 0));
}

#[tokio::test]
async fn ids_and_pages_are_checked_too() {
    let mut shop = Shop::open().await;
    for order_id in ["", "42", "order-", "order-0", "order-1; drop table orders"] {
        let request = GetOrderRequest { order_id: order_id.to_owned() };
        let status = shop.client.get_order(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{order_id}");
        assert!(status.message().starts_with("order_id:"));
    }
    let lists = [
        ("page_size", ListOrdersRequest { page_size: 101, ..Default::default() }),
        ("page_size", ListOrdersRequest { page_size: -1, ..Default::default() }),
        ("page_token", ListOrdersRequest { page_token: "x".to_owned(), ..Default::default() }),
        ("customer", ListOrdersRequest { customer: "a\0".to_owned(), ..Default::default() }),
    ];
    for (field, request) in lists {
        let status = shop.client.list_orders(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(field), "{}", status.message());
    }
}
