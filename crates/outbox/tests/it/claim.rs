//! Claims: whole shards, one owner, nothing marked that was not settled.

use outbox::{Claim, ClaimLimits, Session, migrations};
use testkit::TestDatabase;

use crate::schema::options;

const ALL: ClaimLimits = ClaimLimits { max_shards: 64, max_rows: 1000 };

async fn filled() -> TestDatabase {
    let database = testkit::database(migrations("shop")).await;
    let fill = "insert into outbox (aggregate_id, topic, payload)
                select 'a-' || n % 20, 't', '{}' from generate_series(1, 200) n";
    database.client().await.batch_execute(fill).await.unwrap();
    database
}

fn shards_of(claim: &Claim<'_>) -> std::collections::BTreeSet<String> {
    claim.rows().unwrap().iter().map(|row| row.aggregate_id.to_owned()).collect()
}

#[tokio::test]
async fn two_claims_share_no_aggregate_and_together_have_all() {
    let database = filled().await;
    let mut one = Session::connect(&options(&database.url)).await.unwrap();
    let mut two = Session::connect(&options(&database.url)).await.unwrap();
    let pending = one.pending_shards().await.unwrap();

    let half = ClaimLimits { max_shards: pending.len() as i64 / 2, ..ALL };
    let first = one.claim(&pending, 17, half).await.unwrap();
    let second = two.claim(&pending, 17, ALL).await.unwrap();
    assert!(!first.is_empty() && !second.is_empty());
    assert!(shards_of(&first).is_disjoint(&shards_of(&second)));
    assert_eq!(first.len() + second.len(), 200);

    let everything: Vec<usize> = (0..first.len()).collect();
    assert_eq!(first.settle(&everything).await.unwrap(), everything.len() as u64);
    drop(second);
    let left = database.number("select count(*) from outbox where published_at is null").await;
    assert_eq!(left, 200 - everything.len() as i64);
}

#[tokio::test]
async fn rows_come_in_id_order_per_shard_and_never_more_than_asked_for() {
    let database = filled().await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let pending = session.pending_shards().await.unwrap();
    for max_rows in [1, 5, 7, 199, 200] {
        let claim = session.claim(&pending, 0, ClaimLimits { max_rows, ..ALL }).await.unwrap();
        assert_eq!(claim.len() as i64, max_rows);
        let mut last: std::collections::BTreeMap<&str, i64> = Default::default();
        for row in claim.rows().unwrap() {
            assert!(last.insert(row.aggregate_id, row.id).is_none_or(|before| before < row.id));
        }
    }
}

/// What is acknowledged is marked, whatever became of its neighbours; the mark is later than the row.
#[tokio::test]
async fn only_settled_positions_are_marked() {
    let database = filled().await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let pending = session.pending_shards().await.unwrap();
    let claim = session.claim(&pending, 0, ALL).await.unwrap();
    let ids: Vec<i64> = claim.rows().unwrap().iter().map(|row| row.id).collect();
    assert_eq!(claim.settle(&[3, 0, 77, 4000]).await.unwrap(), 3);
    let marked = format!(
        "select count(*) from outbox where published_at > created_at and id in ({}, {}, {})",
        ids[0], ids[3], ids[77]
    );
    assert_eq!(database.number(&marked).await, 3);
    assert_eq!(database.number("select count(*) from outbox where published_at is null").await, 197);
}

/// Postgres ends the claim of a publisher that says nothing; its shards are free, and it cannot mark any more.
#[tokio::test]
async fn a_silent_claim_is_ended_by_the_server() {
    let database = filled().await;
    let mut silent = options(&database.url);
    silent.idle_in_transaction_timeout = std::time::Duration::from_millis(100);
    let mut session = Session::connect(&silent).await.unwrap();
    let pending = session.pending_shards().await.unwrap();
    let claim = session.claim(&pending, 0, ALL).await.unwrap();

    let mut other = Session::connect(&options(&database.url)).await.unwrap();
    testkit::until("the shards to be free", async || {
        let rows = other.claim(&pending, 0, ALL).await.unwrap().len();
        (rows == 200).then_some(())
    })
    .await;
    assert!(claim.settle(&[0]).await.is_err());
    assert_eq!(database.number("select count(published_at) from outbox").await, 0);
}
