//! Makes the calls that are due: one at a time a worker, any number of workers and replicas.

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use opentelemetry::{KeyValue, metrics::Histogram};
use outbox::Wake;
use sea_orm::DatabaseConnection;
use telemetry::{catalogue, metrics, spans};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    Error,
    app::{give_up_call, postpone_call, settle_call, take_call},
    gateway::{Answer, Gateway},
    settings,
    store::calls::Call,
};

static CALLS: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::seconds(&catalogue::GATEWAY_CALLS));

/// Opens after so many calls in a row without an answer; shared by the workers of a process.
#[derive(Default)]
pub(crate) struct Circuit {
    state: Mutex<(u32, Option<Instant>)>,
}

impl Circuit {
    /// How long to wait before the next call; none: now. The one who asks when the time is over makes the trial
    /// call, and others wait for another `open`.
    fn wait(&self, open: Duration) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let until = state.1?;
        let now = Instant::now();
        if until > now {
            return Some(until - now);
        }
        state.1 = Some(now + open);
        None
    }

    fn answered(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (0, None);
    }

    fn unanswered(&self, limit: u32, open: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        if state.0 >= limit {
            if state.1.is_none() {
                tracing::warn!(failures = state.0, ?open, "the provider gives no answers: circuit open");
            }
            state.1 = Some(Instant::now() + open);
        }
    }
}

/// What a worker works with.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) db: DatabaseConnection,
    pub(crate) gateway: Gateway,
    pub(crate) topic: String,
    pub(crate) settings: settings::Gateway,
    pub(crate) circuit: Arc<Circuit>,
    /// Told after each commit that appended an event.
    pub(crate) wake: Wake,
}

impl Worker {
    /// Makes calls until `shutdown`; the one under way is ended first.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> Result<(), Infallible> {
        let poll = Duration::from_millis(self.settings.poll_ms);
        let open = Duration::from_millis(self.settings.circuit_open_ms);
        while !shutdown.is_cancelled() {
            let wait = match self.circuit.wait(open) {
                Some(wait) => wait,
                None => match self.one().await {
                    Ok(true) => continue,
                    Ok(false) => poll,
                    Err(error) => {
                        tracing::warn!(%error, "no call made, trying again");
                        Duration::from_secs(1)
                    }
                },
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = shutdown.cancelled() => {}
            }
        }
        Ok(())
    }

    /// One call, if one is due.
    async fn one(&self) -> Result<bool, Error> {
        // Longer than the call: nobody else makes it while it is under way.
        let lease = Duration::from_millis(self.settings.timeout_ms) + Duration::from_secs(5);
        let Some(call) = take_call(&self.db, lease).await? else { return Ok(false) };
        let span = spans::step("call provider");
        telemetry::context::set_parent(&span, &call.trace);
        let made = async {
            let began = Instant::now();
            let answer = self.gateway.make(&call).await;
            let labels = [
                KeyValue::new("operation", call.operation.as_str()),
                KeyValue::new("outcome", answer.outcome()),
            ];
            CALLS.record(began.elapsed().as_secs_f64(), &labels);
            self.settle(&call, answer).await
        };
        made.instrument(span).await?;
        Ok(true)
    }

    async fn settle(&self, call: &Call, answer: Answer) -> Result<(), Error> {
        let (order, operation) = (call.order_id, call.operation.as_str());
        match answer {
            Answer::Settled(outcome) => {
                self.circuit.answered();
                match settle_call(&self.db, &self.topic, call, &outcome).await {
                    Err(Error::Impossible(why)) => {
                        tracing::error!(%order, operation, %why, "call set aside for a person");
                        give_up_call(&self.db, call, &why.to_string()).await?;
                    }
                    settled => {
                        settled?;
                        self.wake.wake();
                    }
                }
            }
            Answer::Senseless(why) => {
                self.circuit.answered();
                tracing::error!(%order, operation, why, "call set aside for a person");
                give_up_call(&self.db, call, &why).await?;
            }
            Answer::Unclear(why) => {
                let open = Duration::from_millis(self.settings.circuit_open_ms);
                self.circuit.unanswered(self.settings.circuit_failures, open);
                let delay = self.delay(call.attempts);
                tracing::warn!(%order, operation, attempt = call.attempts, why, ?delay, "no answer, same call again");
                postpone_call(&self.db, call, delay, &why).await?;
            }
        }
        Ok(())
    }

    fn delay(&self, attempts: i32) -> Duration {
        let tries = usize::try_from(attempts.clamp(1, 30)).unwrap_or(1);
        ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(self.settings.retry_min_ms))
            .with_max_delay(Duration::from_millis(self.settings.retry_max_ms))
            .with_jitter()
            .without_max_times()
            .build()
            .nth(tries - 1)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn the_circuit_opens_lets_one_try_and_closes() {
        let circuit = Circuit::default();
        circuit.unanswered(2, OPEN);
        assert_eq!(circuit.wait(OPEN), None);
        circuit.unanswered(2, OPEN);
        assert!(circuit.wait(OPEN).is_some());
        tokio::time::advance(OPEN).await;
        assert_eq!(circuit.wait(OPEN), None, "the trial");
        assert!(circuit.wait(OPEN).is_some(), "the others wait");
        circuit.answered();
        assert_eq!(circuit.wait(OPEN), None);
    }
}
