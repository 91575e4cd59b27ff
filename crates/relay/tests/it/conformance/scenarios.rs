//! What can happen to a relay. Each scenario says what is wrong, or nothing.

use testkit::until;

use super::{
    driver::Driver,
    stage::{PENDING, Stage},
};

/// What a scenario comes to.
type Verdict = Result<(), String>;

fn none(repeats: usize) -> Verdict {
    if repeats == 0 { Ok(()) } else { Err(format!("{repeats} repeats although nothing failed")) }
}

/// An id that is drawn before others and committed after they are published; the relay may be started again in between.
/// A later row of its aggregate shows when it should have been sent.
pub(crate) async fn a_late_commit_is_not_skipped(driver: Driver, restarted: bool) -> Verdict {
    let mut stage = Stage::new(driver).await;
    stage.start(1).await;
    let insert = format!(
        "insert into outbox (aggregate_id, topic, payload) values ('late', '{}', '{{}}')",
        stage.topic
    );
    let late = stage.database.client().await;
    late.batch_execute(&format!("begin; {insert}")).await.unwrap();
    stage.append(100, 10).await;
    stage.until_none("the early ones", PENDING).await;
    if restarted {
        stage.stop().await;
        stage.start(1).await;
    }
    late.batch_execute("commit").await.unwrap();
    stage.write(&insert).await;
    let newer = "select count(*) from outbox where published_at is null
                    and id = (select max(id) from outbox where aggregate_id = 'late')";
    stage.until_none("the newer one", newer).await;
    stage.stop().await;
    match stage.number(PENDING).await {
        0 => stage.judge(&stage.topic).await.and_then(none),
        left => Err(format!("{left} event(s) that were committed late are lost")),
    }
}

/// By the order contract the newer event of an aggregate waits until the older one is committed, so it is neither
/// skipped nor overtaken, while others flow.
pub(crate) async fn a_newer_event_waits_for_an_older_one(driver: Driver) -> Verdict {
    let mut stage = Stage::new(driver).await;
    stage.start(1).await;
    let append = |aggregate: &str| format!("select outbox_append('{aggregate}', '{}', '{{}}')", stage.topic);
    let (late, newer) = (stage.database.client().await, stage.database.client().await);
    late.batch_execute(&format!("begin; {}", append("a"))).await.unwrap();
    let call = append("a");
    let waiting = tokio::spawn(async move { newer.batch_execute(&call).await.unwrap() });
    let blocked = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                      and database = (select oid from pg_database where datname = current_database())";
    until("the newer writer to wait", async || (stage.number(blocked).await > 0).then_some(())).await;
    stage.write(&append("b")).await;
    let other = "select count(*) - 1 from outbox where published_at is not null";
    stage.until_none("the other", other).await;
    late.batch_execute("commit").await.unwrap();
    waiting.await.unwrap();
    stage.until_none("all", PENDING).await;
    stage.stop().await;
    stage.judge(&stage.topic).await.and_then(none)
}

/// Events for a topic that is not there yet wait for it, and nobody waits for them.
pub(crate) async fn a_refused_record_is_not_lost(driver: Driver) -> Verdict {
    let mut stage = Stage::new(driver).await;
    stage.start(1).await;
    let later = format!("{}.later", stage.topic);
    let insert = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select 'l-' || n % 3, '{later}', '{{}}' from generate_series(1, 30) n"
    );
    stage.write(&insert).await;
    stage.append(100, 10).await;
    let known = format!("{PENDING} and topic = '{}'", stage.topic);
    stage.until_none("those of the topic that is there", &known).await;
    testkit::make_topic(&stage.kafka, &later).await;
    stage.write(&insert).await;
    stage.until_none("all", PENDING).await;
    stage.stop().await;
    stage.judge(&later).await?;
    stage.judge(&stage.topic).await.map(drop)
}

/// A drain at shutdown ends the turn that is under way: what is in Kafka is marked, so nothing repeats.
pub(crate) async fn a_shutdown_leaves_no_repeats(driver: Driver) -> Verdict {
    let mut stage = Stage::new(driver).await;
    stage.append(10_000, 500).await;
    stage.start(1).await;
    let some = "select count(*) from outbox where published_at is not null";
    until("some to be published", async || (stage.number(some).await > 500).then_some(())).await;
    stage.stop().await;
    if stage.number(PENDING).await == 0 {
        return Err("it was done before it was stopped".to_owned());
    }
    stage.start(1).await;
    stage.until_none("all", PENDING).await;
    stage.stop().await;
    stage.judge(&stage.topic).await.and_then(none)
}

/// The server ends their sessions again and again, as in a failover. Repeats are allowed, inversions are not.
pub(crate) async fn sessions_that_are_ended_are_made_again(driver: Driver) -> Verdict {
    let mut stage = Stage::new(driver).await;
    stage.append(10_000, 500).await;
    stage.start(2).await;
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                where datname = current_database() and application_name = 'brew-relay'";
    let mut ended = 0;
    while ended < 6 && stage.number(PENDING).await > 0 {
        ended += stage.number(end).await;
    }
    if ended < 6 {
        return Err("it was done before its sessions were ended".to_owned());
    }
    stage.until_none("all", PENDING).await;
    if !stage.running() {
        return Err("a replica gave up".to_owned());
    }
    stage.stop().await;
    stage.judge(&stage.topic).await.map(drop)
}

/// Many events of some aggregates, and several replicas that want them.
pub(crate) async fn replicas_keep_order(driver: Driver, replicas: usize) -> Verdict {
    let mut stage = Stage::new(driver).await;
    stage.start(replicas).await;
    stage.append(10_000, 100).await;
    stage.until_none("all", PENDING).await;
    stage.stop().await;
    stage.judge(&stage.topic).await.and_then(none)
}
