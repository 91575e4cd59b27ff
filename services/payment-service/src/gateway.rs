//! The provider's API, and what its answers mean.

use std::time::Duration;

use reqwest::StatusCode;
use runtime::seeded::{Bug, seeded};
use serde::Deserialize;
use telemetry::{rpc, spans};
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    domain::{Operation, Outcome},
    store::calls::Call,
};

/// The provider.
#[derive(Clone)]
pub(crate) struct Gateway {
    client: reqwest::Client,
    url: String,
    key_retention: Duration,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Definite.
    Settled(Outcome),
    /// None, or one that says nothing: the same call again, later.
    Unclear(String),
    /// Definite and senseless: a person must look.
    Senseless(String),
}

#[derive(Deserialize)]
struct Body {
    authorization_id: Option<Uuid>,
    status: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Found {
    authorizations: Vec<Held>,
}

#[derive(Deserialize)]
struct Held {
    authorization_id: Uuid,
    status: String,
}

impl Answer {
    /// In a word, for the metric.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::Settled(_) => "settled",
            Self::Unclear(_) => "unclear",
            Self::Senseless(_) => "senseless",
        }
    }
}

impl Gateway {
    pub(crate) fn new(url: &str, timeout: Duration, key_retention: Duration) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder().timeout(timeout).build()?;
        Ok(Self { client, url: url.trim_end_matches('/').to_owned(), key_retention })
    }

    /// Makes `call` with its key and its bytes. When the provider may have forgotten the key, looks up by our
    /// reference first, rather than charge again.
    pub(crate) async fn make(&self, call: &Call) -> Answer {
        if call.attempts > 1 && call.age > self.key_retention {
            match self.look_up(call).await {
                Ok(Some(id)) => return Answer::Settled(Outcome::Done(id)),
                Ok(None) => {}
                Err(why) => return Answer::Unclear(why),
            }
        }
        if seeded(Bug::BelievesCapture) && call.operation == Operation::Capture {
            return Answer::Settled(Outcome::Done(Uuid::nil()));
        }
        let key =
            if seeded(Bug::NewKeyPerTry) { Uuid::new_v4().to_string() } else { call.idempotency_key.clone() };
        let path = format!("/v1/{}", call.operation.as_str());
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .header("Idempotency-Key", key)
            .json(&call.request);
        let answer = match self.send("POST", &path, request).await {
            Ok(answer) => answer,
            Err(error) => return Answer::Unclear(error.without_url().to_string()),
        };
        let status = answer.status();
        match answer.json::<Body>().await {
            Ok(body) => read(call, status, body),
            Err(error) => Answer::Unclear(error.without_url().to_string()),
        }
    }

    /// Sends `request` in the current trace; `template` is its path without ids.
    async fn send(
        &self,
        method: &'static str,
        template: &str,
        mut request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, reqwest::Error> {
        let host = self.url.split("//").last().unwrap_or_default();
        let span = rpc::http_call(method, template, host);
        for (name, value) in rpc::headers(&span) {
            request = request.header(name, value);
        }
        let sent = request.send().instrument(span.clone()).await;
        match &sent {
            Ok(answer) => rpc::http_ended(&span, answer.status().as_u16(), false),
            Err(error) => spans::failed(&span, if error.is_timeout() { "timeout" } else { "connection" }),
        }
        sent
    }

    /// The authorization under our reference that is where `call` wants it.
    async fn look_up(&self, call: &Call) -> Result<Option<Uuid>, String> {
        let request = self.client.get(format!("{}/v1/references/{}", self.url, call.order_id));
        let answer = self.send("GET", "/v1/references/{reference}", request).await;
        let answer = answer.map_err(|error| error.without_url().to_string())?;
        let found: Found = answer.json().await.map_err(|error| error.without_url().to_string())?;
        let wanted = reached(call.operation);
        Ok(found
            .authorizations
            .into_iter()
            .find(|held| held.status == wanted || call.operation == Operation::Authorize)
            .map(|held| held.authorization_id))
    }
}

/// The provider's word for what an operation leads to.
fn reached(operation: Operation) -> &'static str {
    match operation {
        Operation::Authorize => "authorized",
        Operation::Capture => "captured",
        Operation::Void => "voided",
        Operation::Refund => "refunded",
    }
}

fn read(call: &Call, status: StatusCode, body: Body) -> Answer {
    let error = body.error.unwrap_or_default();
    match (status.as_u16(), body.authorization_id) {
        (200 | 201, Some(id)) => Answer::Settled(Outcome::Done(id)),
        // A definite no is never asked again.
        (402, _) => Answer::Settled(Outcome::Refused(error)),
        // "It is there already": the effect that we wanted, by an earlier try whose key the provider has forgotten.
        (409, _) if body.status.as_deref() == Some(reached(call.operation)) => {
            match call.request["authorization_id"].as_str().and_then(|id| id.parse().ok()) {
                Some(id) => Answer::Settled(Outcome::Done(id)),
                None => Answer::Senseless(format!("{status}: {error}")),
            }
        }
        (409, _) if error == "in_flight" => Answer::Unclear(error),
        (429 | 500..=599, _) => Answer::Unclear(format!("{status}: {error}")),
        _ => Answer::Senseless(format!("{status}: {error}")),
    }
}
