//! The ways to move an outbox's rows to Kafka.

use messaging::KafkaOptions;
use relay::{Delivery, Mode, Wake};
use testkit::{TestDatabase, relay_options, relay_setup};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::wrong::{self, Wrong};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Driver {
    /// A process of its own, which looks for itself.
    Polling,
    /// Each batch a Kafka transaction.
    ExactlyOnce,
    /// In the writer's process, woken in memory after each commit.
    InProcess,
    /// One that must fail.
    Wrong(Wrong),
}

impl Driver {
    /// One replica; ends after `shutdown`.
    pub(crate) fn start(
        self,
        database: &TestDatabase,
        kafka: &KafkaOptions,
        wake: &Wake,
        shutdown: &CancellationToken,
    ) -> JoinHandle<()> {
        let shutdown = shutdown.clone();
        let mut setup = relay_setup(&database.url, kafka, relay_options(), Mode::Forever);
        match self {
            Self::Polling => {}
            Self::ExactlyOnce => setup.source.delivery = Delivery::ExactlyOnce,
            Self::InProcess => setup.wake = wake.clone(),
            Self::Wrong(wrong) => {
                let database = TestDatabase { url: database.url.clone() };
                return tokio::spawn(wrong::run(wrong, database, kafka.clone(), shutdown));
            }
        }
        tokio::spawn(async move {
            relay::run(setup, shutdown).await.unwrap();
        })
    }
}
