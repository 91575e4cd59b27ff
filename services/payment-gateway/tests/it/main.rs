//! The gateway over HTTP, on a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use payment_gateway::{migrations, serve, settings};
use serde_json::{Value, json};
use testkit::TestDatabase;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

struct Gateway {
    database: TestDatabase,
    url: String,
    client: reqwest::Client,
}

impl Gateway {
    async fn open() -> Self {
        let database = testkit::database(migrations()).await;
        let mut settings = settings::load(None).unwrap();
        settings.database = database.options();
        settings.admin.address = "127.0.0.1:0".parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(settings, listener, CancellationToken::new()));
        let client = reqwest::Client::builder().timeout(Duration::from_secs(2)).build().unwrap();
        Self { database, url, client }
    }

    /// Status and body; none when no answer came in time.
    async fn post(&self, operation: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
        let url = format!("{}/v1/{operation}", self.url);
        let answer = self.client.post(url).header("Idempotency-Key", key).json(body).send().await.ok()?;
        Some((answer.status().as_u16(), answer.json().await.unwrap()))
    }

    async fn booked(&self) -> i64 {
        self.database.number("select count(*) from ledger").await
    }
}

fn ask(token: &str) -> Value {
    json!({"reference": "order-1", "amount_minor": 500, "currency": "EUR", "token": token})
}

fn with_id(id: &Value) -> Value {
    json!({"reference": "order-1", "amount_minor": 500, "currency": "EUR", "authorization_id": id})
}

#[tokio::test]
async fn a_key_is_one_effect_and_one_answer() {
    let gateway = Gateway::open().await;
    let first = gateway.post("authorize", "k1", &ask("")).await.unwrap();
    assert_eq!(first.0, 201);
    assert_eq!(gateway.post("authorize", "k1", &ask("")).await.unwrap(), first);
    let mut other = ask("");
    other["amount_minor"] = json!(501);
    assert_eq!(gateway.post("authorize", "k1", &other).await.unwrap().0, 422);
    assert_eq!(gateway.booked().await, 1);

    let id = &first.1["authorization_id"];
    assert_eq!(gateway.post("capture", "k2", &with_id(id)).await.unwrap().0, 200);
    assert_eq!(gateway.post("capture", "k3", &with_id(id)).await.unwrap().0, 409, "captured before");
    assert_eq!(gateway.post("refund", "k4", &with_id(id)).await.unwrap().0, 200);
    assert_eq!(gateway.booked().await, 3);
}

#[tokio::test]
async fn misbehaviour_is_once_and_the_same_key_then_succeeds() {
    let gateway = Gateway::open().await;
    // Token, first answer (none: no answer in time), effects after it.
    let cases = [
        ("tok_500_before_once", Some(500), 0),
        ("tok_500_after_once", Some(500), 1),
        ("tok_429_once", Some(429), 0),
        ("tok_timeout_once", None, 1),
        ("tok_hang_once", None, 0),
    ];
    let mut booked = 0;
    for (token, status, effects) in cases {
        let first = gateway.post("authorize", token, &ask(token)).await;
        assert_eq!(first.map(|(status, _)| status), status, "{token}");
        assert_eq!(gateway.booked().await, booked + effects, "{token}");
        let again = gateway.post("authorize", token, &ask(token)).await.unwrap();
        assert_eq!(again.0, 201, "{token}");
        booked += 1;
        assert_eq!(gateway.booked().await, booked, "{token}");
    }
}

#[tokio::test]
async fn declines_and_bad_input_are_definite() {
    let gateway = Gateway::open().await;
    assert_eq!(gateway.post("authorize", "a", &ask("tok_declined")).await.unwrap().0, 402);
    let mut amount = ask("");
    amount["amount_minor"] = json!(1066);
    assert_eq!(gateway.post("authorize", "b", &amount).await.unwrap().0, 402);
    amount["amount_minor"] = json!(-5);
    assert_eq!(gateway.post("authorize", "c", &amount).await.unwrap().0, 400);
    assert_eq!(gateway.post("authorize", "", &ask("")).await.unwrap().0, 400);
    assert_eq!(gateway.post("steal", "d", &ask("")).await.unwrap().0, 404);
    let nobody = json!("01890a5d-ac96-774b-bcce-b302099a8057");
    assert_eq!(gateway.post("capture", "e", &with_id(&nobody)).await.unwrap().0, 404);
    assert_eq!(gateway.booked().await, 0);
}

#[tokio::test]
async fn a_reference_is_looked_up() {
    let gateway = Gateway::open().await;
    gateway.post("authorize", "k1", &ask("")).await.unwrap();
    let url = format!("{}/v1/references/order-1", gateway.url);
    let found: Value = gateway.client.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(found["authorizations"][0]["status"], "authorized");
    let url = format!("{}/v1/references/order-2", gateway.url);
    let found: Value = gateway.client.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(found["authorizations"], json!([]));
}

#[tokio::test]
async fn it_is_ready_while_its_database_is_there() {
    let database = testkit::database(migrations()).await;
    let http = testkit::free_address();
    let program = env!("CARGO_BIN_EXE_payment-gateway");
    testkit::ready_while_the_database_is_there(program, &database, &[("BREW__HTTP__ADDRESS", &http)]).await;
}
