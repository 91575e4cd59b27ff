//! An outbox, a topic, and publishers as processes between them.

use std::os::unix::process::ExitStatusExt;

use messaging::KafkaOptions;
use nix::sys::signal::Signal;
use testkit::{History, Service, TestDatabase, history, run_to_end};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_outbox-publisher");

/// Small, so that a publisher makes many claims and meets the others.
const BATCH: &str = "40";

pub(crate) struct Stage {
    pub(crate) database: TestDatabase,
    pub(crate) kafka: KafkaOptions,
    pub(crate) topic: String,
    /// Of its source.
    delivery: &'static str,
}

impl Stage {
    /// Whose publishers deliver exactly once.
    pub(crate) async fn exactly_once(kafka: KafkaOptions) -> Self {
        // Its name is that of the lanes' transactional ids, so no other test's.
        let source = format!("shop-{}", uuid::Uuid::new_v4().simple());
        testkit::progress_topic(&kafka, &source).await;
        let topic = testkit::topic(&kafka, None).await;
        let database = testkit::database(outbox::migrations(&source)).await;
        Self { database, kafka, topic, delivery: "exactly-once" }
    }

    pub(crate) async fn on(kafka: KafkaOptions) -> Self {
        let topic = testkit::topic(&kafka, None).await;
        Self::with_topic(kafka, topic).await
    }

    pub(crate) async fn with_topic(kafka: KafkaOptions, topic: String) -> Self {
        let database = testkit::database(outbox::migrations("shop")).await;
        Self { database, kafka, topic, delivery: "at-least-once" }
    }

    /// `rows` events more, in turn of each of `aggregates`.
    pub(crate) async fn append(&self, rows: u32, aggregates: u32) {
        let insert = format!(
            "insert into outbox (aggregate_id, topic, payload)
             select 'order-' || n % {aggregates}, '{}', '{{}}' from generate_series(1, {rows}) n",
            self.topic
        );
        self.database.client().await.batch_execute(&insert).await.unwrap();
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.database.number(query).await
    }

    pub(crate) async fn pending(&self) -> i64 {
        self.number("select count(*) from outbox where published_at is null").await
    }

    pub(crate) async fn until_published(&self) {
        testkit::until("all to be published", async || (self.pending().await == 0).then_some(())).await;
    }

    /// A publisher, with `more` settings.
    pub(crate) fn publisher(&self, more: &[(&str, &str)]) -> Service {
        Service::start(PROGRAM, &["--batch-size", BATCH], &self.settings(more))
    }

    /// A publisher that ends when nothing is pending.
    pub(crate) async fn drain(&self) {
        self.drain_with(&[]).await;
    }

    /// The same, with `more` settings.
    pub(crate) async fn drain_with(&self, more: &[(&str, &str)]) {
        let run = run_to_end(PROGRAM, &["--exit-when-drained"], &self.settings(more)).await;
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }

    fn settings<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut settings = vec![
            ("BREW__SOURCES__SHOP__URL", self.database.url.as_str()),
            ("BREW__KAFKA__BROKERS", self.kafka.brokers.as_str()),
            ("BREW__UPKEEP__ENABLED", "false"),
            ("BREW__SOURCES__SHOP__DELIVERY", self.delivery),
        ];
        settings.extend(more);
        settings
    }

    /// What must hold after any fault: each row is marked, and its event in the topic, in the order of its aggregate.
    pub(crate) async fn sound(&self) -> History {
        let records =
            messaging::read_all(&self.kafka, &self.topic, std::time::Duration::from_secs(60)).await.unwrap();
        let history = history(&records);
        let ids =
            "select coalesce(array_agg(id order by id), '{}') from outbox where published_at is not null";
        let ids: Vec<i64> = self.database.client().await.query_one(ids, &[]).await.unwrap().get(0);
        assert_eq!(history.ids.iter().copied().collect::<Vec<_>>(), ids, "marked, and in the topic");
        assert_eq!(history.out_of_order(), [""; 0]);
        assert_eq!(self.pending().await, 0);
        assert_eq!(self.number("select count(*) from outbox where parked_at is not null").await, 0);
        history
    }
}

/// Ends it as Kubernetes does; it must drain and say so.
pub(crate) async fn end(service: Service) {
    service.signal(Signal::SIGTERM);
    let status = service.ended().await;
    assert!(status.success(), "{status}");
}

/// What a publisher can die of, and how often what it had sent is repeated then.
pub(crate) const POINTS: [(&str, Repeats); 6] = [
    ("relay-claimed", Repeats::None),
    ("producer-enqueued", Repeats::Any),
    ("producer-all-enqueued", Repeats::Any),
    ("producer-acked", Repeats::Any),
    ("relay-all-acked", Repeats::Some),
    ("relay-committed", Repeats::None),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    None,
    Any,
    Some,
}

/// One of `replicas` publishers dies when it has passed `point` so many times before, while events come all the time.
pub(crate) async fn crash_at(
    stage: Stage,
    (point, passes_before): (&str, u32),
    replicas: usize,
    expected: Repeats,
) {
    let what = format!("{point} after {passes_before}, {replicas} replica(s), {}", stage.delivery);
    let points = format!("{point}={passes_before}*off->return");
    let victim = tokio::spawn(stage.publisher(&[("FAILPOINTS", &points)]).ended());
    if stage.delivery == "exactly-once" {
        // It has a lane before the others have them all.
        stage.append(400, 50).await;
        let lanes = "select count(*) from pg_locks where locktype = 'advisory'
                        and database = (select oid from pg_database where datname = current_database())";
        let kept = async || (stage.number(lanes).await > 0 || victim.is_finished()).then_some(());
        testkit::until("the victim to keep a lane", kept).await;
    }
    let others: Vec<_> = (1..replicas).map(|_| stage.publisher(&[])).collect();
    while !victim.is_finished() {
        if stage.pending().await < 400 {
            stage.append(400, 50).await;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(victim.await.unwrap().signal(), Some(Signal::SIGABRT as i32), "{what}");
    stage.drain().await;
    for other in others {
        end(other).await;
    }
    let repeats = stage.sound().await.repeats;
    match expected {
        Repeats::None => assert_eq!(repeats, 0, "{what}"),
        Repeats::Some => assert!(repeats > 0, "{what}"),
        Repeats::Any => {}
    }
}
