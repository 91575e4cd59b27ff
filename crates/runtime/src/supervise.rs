//! Tasks that belong together: the first that fails stops them all, and none outlives the drain.

use std::{future::Future, net::SocketAddr, time::Duration};

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Why a service ended otherwise than by its own will.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A task gave up.
    #[error("{name} failed")]
    Failed {
        /// Which task.
        name: &'static str,
        /// Its reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A task panicked: a fault of the program.
    #[error("a task panicked")]
    Panicked(#[from] JoinError),
    /// Tasks that did not end in the time for draining.
    #[error("{left} task(s) did not drain within {grace_ms} ms")]
    Undrained {
        /// How many.
        left: usize,
        /// The time they had.
        grace_ms: u128,
    },
    /// Nobody answers at the admin port.
    #[error("no answer at {place}")]
    NoAnswer {
        /// Where it was asked.
        place: SocketAddr,
        /// Why not.
        source: reqwest::Error,
    },
    /// A service that is not ready says what it waits for.
    #[error("not ready: {0}")]
    NotReady(String),
}

type TaskEnd = (&'static str, Result<(), Box<dyn std::error::Error + Send + Sync>>);

/// A set of tasks under one shutdown token.
pub struct Supervisor {
    shutdown: CancellationToken,
    tasks: JoinSet<TaskEnd>,
}

impl Supervisor {
    /// Makes an empty set; its tasks are expected to end when `shutdown` is cancelled.
    #[must_use]
    pub fn new(shutdown: CancellationToken) -> Self {
        Self { shutdown, tasks: JoinSet::new() }
    }

    /// Starts a task. It may end early with `Ok`: the others go on.
    pub fn spawn<E>(&mut self, name: &'static str, task: impl Future<Output = Result<(), E>> + Send + 'static)
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        self.tasks.spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Waits until all tasks have ended. The first failure cancels the token; after that, or after a signal, the
    /// tasks have `grace` to drain, then they are aborted.
    ///
    /// # Errors
    /// The first failure, else that tasks had to be aborted.
    pub async fn run(mut self, grace: Duration) -> Result<(), Error> {
        let mut first = None;
        loop {
            tokio::select! {
                ended = self.tasks.join_next() => match ended {
                    None => return first.map_or(Ok(()), Err),
                    Some(end) => self.note(end, &mut first),
                },
                () = self.shutdown.cancelled() => break,
            }
        }
        let drain = async {
            while let Some(end) = self.tasks.join_next().await {
                note_end(end, &mut first);
            }
        };
        let drained = tokio::time::timeout(grace, drain).await;
        match (first, drained) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(()),
            (None, Err(_)) => Err(Error::Undrained { left: self.tasks.len(), grace_ms: grace.as_millis() }),
        }
    }

    fn note(&self, end: Result<TaskEnd, JoinError>, first: &mut Option<Error>) {
        note_end(end, first);
        if first.is_some() {
            self.shutdown.cancel();
        }
    }
}

fn note_end(end: Result<TaskEnd, JoinError>, first: &mut Option<Error>) {
    let error = match end {
        Ok((name, Ok(()))) => {
            tracing::debug!(name, "task ended");
            return;
        }
        Ok((name, Err(source))) => Error::Failed { name, source },
        Err(panicked) => Error::Panicked(panicked),
    };
    first.get_or_insert(error);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("broken")]
    struct Broken;

    #[tokio::test]
    async fn first_failure_stops_the_others() {
        let token = CancellationToken::new();
        let mut tasks = Supervisor::new(token.clone());
        let waiting = token.clone();
        tasks.spawn("waits", async move {
            waiting.cancelled().await;
            Ok::<(), Broken>(())
        });
        tasks.spawn("fails", async { Err(Broken) });
        let error = tasks.run(Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(error, Error::Failed { name: "fails", .. }));
        assert!(token.is_cancelled());
    }

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let mut tasks = Supervisor::new(CancellationToken::new());
        tasks.spawn("panics", async {
            assert!(std::env::args().count() == usize::MAX, "on purpose");
            Ok::<(), Broken>(())
        });
        assert!(matches!(tasks.run(Duration::from_secs(5)).await, Err(Error::Panicked(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_drain_is_aborted_and_said() {
        let token = CancellationToken::new();
        let mut tasks = Supervisor::new(token.clone());
        tasks.spawn("hangs", std::future::pending::<Result<(), Broken>>());
        token.cancel();
        let end = tasks.run(Duration::from_secs(5)).await;
        assert!(matches!(end, Err(Error::Undrained { left: 1, .. })));
    }
}
