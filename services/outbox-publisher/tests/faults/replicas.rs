//! Publishers that come and go, and an aggregate that has more than all others.

use crate::{
    chance,
    common::{Stage, end},
    rounds,
};

/// 1 to 8 to 1 while events come, each ended as Kubernetes does: nothing repeats, since each drains.
#[tokio::test]
async fn a_scale_storm_repeats_nothing() {
    let mut chance = chance("scale storm");
    for _ in 0..rounds() {
        let stage = Stage::on(testkit::kafka()).await;
        let mut publishers = Vec::new();
        for replicas in [1, 8, 1, 4, 8, 1] {
            while publishers.len() < replicas {
                publishers.push(stage.publisher(&[]));
            }
            while publishers.len() > replicas {
                let one = publishers.swap_remove(chance.usize(..publishers.len()));
                end(one).await;
            }
            stage.append(2000, 100).await;
            let left = i64::from(chance.u32(0..1500));
            testkit::until("progress", async || (stage.pending().await <= left).then_some(())).await;
        }
        stage.until_published().await;
        for publisher in publishers {
            end(publisher).await;
        }
        let history = stage.sound().await;
        assert_eq!((history.ids.len(), history.repeats), (12_000, 0));
    }
}

/// 20,000 events of one aggregate came first. The 3,000 of a thousand others need not wait for them, but for those in
/// its shard: a shard is sent in the order of its ids.
#[tokio::test]
async fn a_hot_aggregate_starves_nobody() {
    let stage = Stage::on(testkit::kafka()).await;
    stage.append(20_000, 1).await;
    let others = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select 'other-' || n % 1000, '{}', '{{}}' from generate_series(1, 3000) n",
        stage.topic
    );
    stage.database.client().await.batch_execute(&others).await.unwrap();
    let publishers = [stage.publisher(&[]), stage.publisher(&[])];
    let waiting = "select count(*) from outbox where published_at is null
                      and shard <> (select shard from outbox where aggregate_id = 'order-0' limit 1)";
    testkit::until("the others", async || (stage.number(waiting).await == 0).then_some(())).await;
    let left = stage.pending().await;
    assert!(left > 10_000, "the others waited for the hot one, of which {left} are left");
    stage.until_published().await;
    for publisher in publishers {
        end(publisher).await;
    }
    assert_eq!(stage.sound().await.repeats, 0);
}
