//! A broker that dies, stands still, or whose answers are lost.

use std::time::Duration;

use nix::sys::signal::Signal;
use testkit::{Broker, Proxy, Replies};

use crate::common::{Stage, end};

/// So many aggregates that each partition has some.
const AGGREGATES: u32 = 100;

/// Some are published and some are not.
async fn in_the_middle(stage: &Stage) {
    let before = stage.pending().await;
    testkit::until("some progress", async || (stage.pending().await < before).then_some(())).await;
    assert!(stage.pending().await > 0, "all was published before the fault");
}

async fn two_publishers(stage: &Stage) -> [testkit::Service; 2] {
    let publishers = [stage.publisher(&[]), stage.publisher(&[])];
    stage.append(20_000, AGGREGATES).await;
    in_the_middle(stage).await;
    publishers
}

#[tokio::test]
async fn a_broker_that_is_killed_and_comes_back_costs_repeats_at_most() {
    let mut broker = Broker::start(None).await;
    let stage = Stage::on(broker.options()).await;
    let publishers = two_publishers(&stage).await;
    broker.kill().await;
    // What is acknowledged can be marked; then nobody holds a shard while the broker is away.
    let claims = "select count(*) from pg_stat_activity where datname = current_database()
                   and application_name = 'brew-relay' and state = 'idle in transaction'";
    testkit::until("the claims' end", async || (stage.number(claims).await == 0).then_some(())).await;
    broker.restart().await;
    stage.until_published().await;
    for publisher in publishers {
        end(publisher).await;
    }
    stage.sound().await;
}

/// In lanes it costs nothing, also between Kafka's commit and the mark, where each batch stands for a moment here.
#[tokio::test]
async fn a_broker_that_is_killed_between_the_two_commits_makes_no_repeats_in_lanes() {
    let mut broker = Broker::start(None).await;
    let stage = Stage::exactly_once(broker.options()).await;
    let slow = [("FAILPOINTS", "relay-all-acked=delay(50)")];
    let publishers = [stage.publisher(&slow), stage.publisher(&slow)];
    for _ in 0..3 {
        stage.append(4000, AGGREGATES).await;
        in_the_middle(&stage).await;
        broker.kill().await;
        broker.restart().await;
    }
    stage.until_published().await;
    for publisher in publishers {
        end(publisher).await;
    }
    assert_eq!(stage.sound().await.repeats, 0);
}

/// Orders are taken all the while, nothing is marked, and a publisher that dies in the meantime changes nothing.
#[tokio::test]
async fn while_the_broker_is_away_events_are_kept_and_nothing_is_marked() {
    let mut broker = Broker::start(None).await;
    let stage = Stage::on(broker.options()).await;
    broker.kill().await;
    for _ in 0..2 {
        let publisher = stage.publisher(&[]);
        stage.append(50, AGGREGATES).await;
        tokio::time::timeout(Duration::from_secs(8), stage.until_published()).await.unwrap_err();
        publisher.signal(Signal::SIGKILL);
        assert!(!publisher.ended().await.success());
    }
    assert_eq!(stage.pending().await, 100);
    broker.restart().await;
    stage.drain().await;
    let history = stage.sound().await;
    assert_eq!((history.ids.len(), history.repeats), (100, 0));
}

/// A request that was given up for lost reaches the broker when all it held, and later events, have been sent again by
/// another producer: they come twice, the second time too late, and the first time in order.
#[tokio::test]
async fn a_request_that_arrives_late_brings_repeats_and_no_disorder() {
    let proxy = Proxy::start().await;
    let broker = Broker::start(Some(proxy.address.to_string())).await;
    proxy.lead_to(&broker.address);
    let stage = Stage::on(broker.options()).await;
    let publisher = stage.publisher(&[("BREW__RELAY__SEND_DEADLINE_MS", "1000")]);
    stage.append(2000, AGGREGATES).await;
    in_the_middle(&stage).await;
    proxy.hold();
    stage.until_published().await;
    stage.append(1000, AGGREGATES).await;
    stage.until_published().await;
    end(publisher).await;
    let before = stage.sound().await.repeats;
    proxy.release();
    testkit::until("the late request", async || (stage.sound().await.repeats > before).then_some(())).await;
}

/// For half a minute, which is longer than the send deadline and its cap.
#[tokio::test]
async fn a_broker_that_is_frozen_and_thawed_loses_nothing() {
    let broker = Broker::start(None).await;
    let stage = Stage::on(broker.options()).await;
    let publishers = two_publishers(&stage).await;
    broker.freeze();
    tokio::time::timeout(Duration::from_secs(30), stage.until_published()).await.unwrap_err();
    broker.thaw();
    stage.until_published().await;
    for publisher in publishers {
        end(publisher).await;
    }
    stage.sound().await;
}

/// The broker has written what it was sent, and nobody hears of it: all of that is sent again.
#[tokio::test]
async fn acks_that_are_lost_on_the_way_cost_repeats_and_no_more() {
    let proxy = Proxy::start().await;
    let broker = Broker::start(Some(proxy.address.to_string())).await;
    proxy.lead_to(&broker.address);
    let stage = Stage::on(broker.options()).await;
    let deadline = [("BREW__RELAY__SEND_DEADLINE_MS", "1000")];
    let publisher = stage.publisher(&deadline);
    stage.append(5000, AGGREGATES).await;
    in_the_middle(&stage).await;
    proxy.replies(Replies::Lost);
    tokio::time::timeout(Duration::from_secs(5), stage.until_published()).await.unwrap_err();
    proxy.replies(Replies::Pass);
    stage.until_published().await;
    end(publisher).await;
    assert!(stage.sound().await.repeats > 0, "no ack was lost");
}

/// The hole of `docs/decisions/0003` on real brokers. A follower that is frozen is taken out, so that records are
/// refused for a moment, and accepted as soon as it is back: a fresh producer with several requests under way could
/// then report success for what is in no log. Many are fresh here, since their deadline is short. What is marked must
/// be there.
#[tokio::test]
async fn an_ack_is_true_while_replicas_come_and_go() {
    let broker = Broker::start(None).await;
    let second = broker.second().await;
    let topic = testkit::topic_on_two(&broker.options()).await;
    let stage = Stage::with_topic(broker.options(), topic).await;
    let deadline = [("BREW__RELAY__SEND_DEADLINE_MS", "1000"), ("BREW__RELAY__SEND_DEADLINE_CAP_MS", "1000")];
    let publishers = [stage.publisher(&deadline), stage.publisher(&deadline)];
    for _ in 0..crate::rounds().max(3) {
        stage.append(2_000, AGGREGATES).await;
        in_the_middle(&stage).await;
        second.freeze();
        // Longer than the controller waits for it (9 s).
        tokio::time::timeout(Duration::from_secs(12), stage.until_published()).await.unwrap_err();
        second.thaw();
        stage.until_published().await;
    }
    for publisher in publishers {
        end(publisher).await;
    }
    stage.sound().await;
    drop(second);
}
