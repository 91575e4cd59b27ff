//! An outbox, a topic, and replicas of one driver between them.

use messaging::KafkaOptions;
use relay::Wake;
use testkit::{TestDatabase, history};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::driver::Driver;

pub(crate) const PENDING: &str = "select count(*) from outbox where published_at is null";

/// Those of drivers here, and of the ones that are wrong.
const SESSIONS: &str = "select count(*) from pg_stat_activity
                         where datname = current_database() and application_name = 'brew-relay'";

pub(crate) struct Stage {
    pub(crate) database: TestDatabase,
    pub(crate) kafka: KafkaOptions,
    pub(crate) topic: String,
    driver: Driver,
    wake: Wake,
    shutdown: CancellationToken,
    replicas: Vec<JoinHandle<()>>,
}

impl Stage {
    /// Without a replica yet.
    pub(crate) async fn new(driver: Driver) -> Self {
        let kafka = testkit::kafka();
        let topic = testkit::topic(&kafka, None).await;
        // Its name is that of the lanes' transactional ids, so no other test's.
        let source = format!("shop-{}", uuid::Uuid::new_v4().simple());
        if matches!(driver, Driver::ExactlyOnce) {
            testkit::progress_topic(&kafka, &source).await;
        }
        let database = testkit::database(outbox::migrations(&source)).await;
        let (wake, shutdown) = (Wake::default(), CancellationToken::new());
        Self { database, kafka, topic, driver, wake, shutdown, replicas: Vec::new() }
    }

    /// All are there before this returns, so that each has its share of what comes.
    pub(crate) async fn start(&mut self, replicas: usize) {
        for _ in 0..replicas {
            let one = self.driver.start(&self.database, &self.kafka, &self.wake, &self.shutdown);
            self.replicas.push(one);
        }
        let wanted = self.replicas.len() as i64;
        let there = async || (self.database.number(SESSIONS).await >= wanted).then_some(());
        testkit::until("every replica to be there", there).await;
    }

    /// Runs `sql`, which commits, and then wakes the drivers as a writer does.
    pub(crate) async fn write(&self, sql: &str) {
        self.database.client().await.batch_execute(sql).await.unwrap();
        self.wake.wake();
    }

    /// `rows` events, in turn of each of `aggregates`.
    pub(crate) async fn append(&self, rows: u32, aggregates: u32) {
        let topic = &self.topic;
        self.write(&format!(
            "insert into outbox (aggregate_id, topic, payload)
             select 'a-' || n * 7919 % {aggregates}, '{topic}', jsonb_build_object('n', n)
               from generate_series(1, {rows}) n"
        ))
        .await;
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.database.number(query).await
    }

    pub(crate) async fn until_none(&self, what: &str, query: &str) {
        testkit::until(what, async || (self.number(query).await == 0).then_some(())).await;
    }

    /// Shuts all replicas down, as a service does, and waits for their ends.
    pub(crate) async fn stop(&mut self) {
        self.shutdown.cancel();
        for replica in self.replicas.drain(..) {
            replica.await.unwrap();
        }
        self.shutdown = CancellationToken::new();
    }

    pub(crate) fn running(&self) -> bool {
        self.replicas.iter().all(|replica| !replica.is_finished())
    }

    /// Every event that is marked is in its topic, each aggregate's in order; and how many repeats there are.
    pub(crate) async fn judge(&self, topic: &str) -> Result<usize, String> {
        let history = history(&testkit::read(topic).await);
        let marked =
            format!("select count(*) from outbox where topic = '{topic}' and published_at is not null");
        let lost = self.number(&marked).await - history.ids.len() as i64;
        if lost > 0 {
            return Err(format!("{lost} event(s) are marked and lost"));
        }
        match history.out_of_order()[..] {
            [] if matches!(self.driver, Driver::ExactlyOnce) && history.repeats > 0 => {
                Err(format!("{} repeats for a reader of what is committed", history.repeats))
            }
            [] => Ok(history.repeats),
            [first, ..] => {
                Err(format!("out of order, first of all {first}: {:?}", history.first_seen[first]))
            }
        }
    }
}
