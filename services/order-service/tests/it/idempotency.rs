//! One order per idempotency key.

use proto::order::v1::PlaceOrderRequest;
use tonic::Code;

use crate::shop::{Shop, order};

#[tokio::test]
async fn the_same_key_and_body_is_the_same_order() {
    let shop = Shop::open().await;
    let request = order(&[("latte", 2)]);
    let first = shop.place(request.clone()).await.unwrap();
    let again = shop.place(request).await.unwrap();
    assert!(again.replayed && !first.replayed);
    assert_eq!(first.order, again.order);
    assert_eq!(shop.rows().await, (1, 1, 1));
}

#[tokio::test]
async fn the_same_key_with_another_body_is_refused() {
    let shop = Shop::open().await;
    let request = order(&[("latte", 2)]);
    shop.place(request.clone()).await.unwrap();
    let others = [
        PlaceOrderRequest { customer: "bob".to_owned(), ..request.clone() },
        PlaceOrderRequest { lines: order(&[("latte", 3)]).lines, ..request.clone() },
        PlaceOrderRequest { lines: order(&[("latte", 2), ("mocha", 1)]).lines, ..request.clone() },
    ];
    for other in others {
        let status = shop.place(other).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().starts_with("idempotency_key:"));
    }
    assert_eq!(shop.rows().await, (1, 1, 1));
}

#[tokio::test]
async fn many_at_once_with_one_key_are_one_order() {
    let shop = Shop::open().await;
    let request = order(&[("latte", 1)]);
    let calls = (0..20).map(|_| shop.place(request.clone()));
    let placed: Vec<_> = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(placed.iter().filter(|placed| !placed.replayed).count(), 1);
    assert!(placed.iter().all(|one| one.order == placed[0].order));
    assert_eq!(shop.rows().await, (1, 1, 1));
}
