//! The provider's API.
//!
//! `POST /v1/{authorize|capture|void|refund}` with `Idempotency-Key`; `GET /v1/references/{reference}`.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{MatchedPath, Path, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};
use sea_orm::DatabaseConnection;
use serde_json::{Value, json};
use telemetry::rpc;
use tracing::Instrument;

use crate::{
    books::{self, Answer, Ask, Refusal},
    mischief::{Mischief, decide},
    settings::Misbehave,
};

pub(crate) struct Gateway {
    pub(crate) db: DatabaseConnection,
    pub(crate) misbehave: Misbehave,
}

type Reply = (StatusCode, Json<Value>);

pub(crate) fn routes(gateway: Gateway) -> Router {
    Router::new()
        .route("/v1/{operation}", post(perform))
        .route("/v1/references/{reference}", get(look_up))
        .layer(middleware::from_fn(traced))
        .with_state(Arc::new(gateway))
}

async fn traced(route: MatchedPath, request: Request, next: Next) -> Response {
    let span = rpc::http_served(request.method().as_str(), route.as_str(), request.headers());
    let response = next.run(request).instrument(span.clone()).await;
    rpc::http_ended(&span, response.status().as_u16(), true);
    response
}

async fn perform(
    State(gateway): State<Arc<Gateway>>,
    Path(operation): Path<String>,
    headers: HeaderMap,
    Json(ask): Json<Ask>,
) -> Reply {
    if !["authorize", "capture", "void", "refund"].contains(&operation.as_str()) {
        return reply((404, json!({"error": "no such operation"})));
    }
    let Some(key) =
        headers.get("idempotency-key").and_then(|key| key.to_str().ok()).filter(|key| !key.is_empty())
    else {
        return reply((400, json!({"error": "Idempotency-Key is missing"})));
    };
    match answer(&gateway, &operation, key, &ask).await {
        Ok(answer) => reply(answer),
        Err(Refusal::OtherBody) => reply((422, json!({"error": "the key was used with another body"}))),
        Err(Refusal::InFlight) => reply((409, json!({"error": "in_flight"}))),
        Err(Refusal::Database(error)) => {
            tracing::warn!(%error, "books");
            reply((503, json!({"error": "unavailable"})))
        }
    }
}

async fn answer(gateway: &Gateway, operation: &str, key: &str, ask: &Ask) -> Result<Answer, Refusal> {
    let attempt = books::attempt(&gateway.db, key).await?;
    let token = match ask.authorization_id {
        Some(id) => books::token(&gateway.db, id).await?.unwrap_or_default(),
        None => ask.token.clone(),
    };
    let hang = Duration::from_millis(gateway.misbehave.hang_ms);
    let failed = (500, json!({"error": "internal"}));
    match decide(&token, key, attempt, gateway.misbehave.percent) {
        Mischief::None => books::perform(&gateway.db, operation, key, ask).await,
        Mischief::Slow => {
            tokio::time::sleep(Duration::from_millis(gateway.misbehave.slow_ms)).await;
            books::perform(&gateway.db, operation, key, ask).await
        }
        Mischief::Hang => {
            tokio::time::sleep(hang).await;
            Ok(failed)
        }
        Mischief::LoseReply => {
            books::perform(&gateway.db, operation, key, ask).await?;
            tokio::time::sleep(hang).await;
            Ok(failed)
        }
        Mischief::FailBefore => Ok(failed),
        Mischief::FailAfter => {
            books::perform(&gateway.db, operation, key, ask).await?;
            Ok(failed)
        }
        Mischief::TooMany => Ok((429, json!({"error": "too_many"}))),
    }
}

async fn look_up(State(gateway): State<Arc<Gateway>>, Path(reference): Path<String>) -> Reply {
    match books::look_up(&gateway.db, &reference).await {
        Ok(found) => reply((200, json!({"authorizations": found}))),
        Err(error) => {
            tracing::warn!(%error, "books");
            reply((503, json!({"error": "unavailable"})))
        }
    }
}

fn reply((status, body): Answer) -> Reply {
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(body))
}
