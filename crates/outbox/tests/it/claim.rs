//! Claims: whole shards, one owner, nothing marked that was not settled.

use outbox::{Claim, ClaimLimits, Session, Settlement, migrations};
use testkit::TestDatabase;

use crate::schema::options;

const ALL: ClaimLimits = ClaimLimits { max_shards: 64, max_rows: 1000 };

fn acknowledged(positions: &[usize]) -> Settlement<'_> {
    Settlement { acknowledged: positions, ..Settlement::default() }
}

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
    assert_eq!(first.settle(acknowledged(&everything)).await.unwrap(), everything.len() as u64);
    drop(second);
    let left = database.number("select count(*) from outbox where published_at is null").await;
    assert_eq!(left, 200 - everything.len() as i64);
}

#[tokio::test]
async fn rows_come_in_id_order_per_shard_at_least_half_and_never_more_than_asked_for() {
    let database = filled().await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let pending = session.pending_shards().await.unwrap();
    for max_rows in [1, 5, 7, 199, 200] {
        let claim = session.claim(&pending, 0, ClaimLimits { max_rows, ..ALL }).await.unwrap();
        let found = claim.len() as i64;
        assert!(found <= max_rows && found * 2 >= max_rows, "{found} of {max_rows}");
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
    assert_eq!(claim.settle(acknowledged(&[3, 0, 77, 4000])).await.unwrap(), 3);
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
    assert!(claim.settle(acknowledged(&[0])).await.is_err());
    assert_eq!(database.number("select count(published_at) from outbox").await, 0);
}

/// Sends all that is pending, six times, while new rows come. Returns what was sent, by id.
async fn some_turns(database: &TestDatabase, session: &mut Session) -> Vec<i64> {
    let mut sent = Vec::new();
    for _ in 0..6 {
        let fill =
            "insert into outbox (aggregate_id, topic, payload) values ('a', 't', '{}'), ('b', 't', '{}')";
        database.client().await.batch_execute(fill).await.unwrap();
        let pending = session.pending_shards().await.unwrap();
        let claim = session.claim(&pending, 0, ALL).await.unwrap();
        sent.extend(claim.rows().unwrap().iter().map(|row| row.id));
        let everything: Vec<usize> = (0..claim.len()).collect();
        claim.settle(acknowledged(&everything)).await.unwrap();
    }
    sent.sort_unstable();
    sent
}

/// Other tests' transactions hold a bound back, since ids of transactions are the whole server's: not for ever.
async fn until_the_bound_moves(database: &TestDatabase, session: &mut Session, shard: i16) {
    testkit::until("the bound to move", async || {
        some_turns(database, session).await;
        (session.low_bound(shard) > 0).then_some(())
    })
    .await;
}

async fn shard_of(database: &TestDatabase, aggregate: &str) -> i16 {
    let shard = format!("select (hashtextextended('{aggregate}', 0) & 63)::bigint");
    i16::try_from(database.number(&shard).await).unwrap()
}

#[tokio::test]
async fn the_bound_moves_while_no_transaction_is_old() {
    let database = testkit::database(migrations("shop")).await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    assert_eq!(some_turns(&database, &mut session).await, (1..=12).collect::<Vec<i64>>());
    let shard = shard_of(&database, "a").await;
    until_the_bound_moves(&database, &mut session, shard).await;
}

/// Ids commit out of order: a row that was there first and is committed last is not passed over, whoever wrote it.
#[tokio::test]
async fn a_row_that_commits_late_is_sent_at_the_next_look() {
    for write in [
        "insert into outbox (aggregate_id, topic, payload) values ('a', 't', '{}')",
        "select outbox_append('a', 't', '{}')",
    ] {
        let database = testkit::database(migrations("shop")).await;
        let mut session = Session::connect(&options(&database.url)).await.unwrap();
        let late = database.client().await;
        late.batch_execute(&format!("begin; {write}")).await.unwrap();
        assert_eq!(some_turns(&database, &mut session).await, (2..=13).collect::<Vec<i64>>());
        assert_eq!(session.low_bound(shard_of(&database, "a").await), 0, "a transaction is older");
        late.batch_execute("commit").await.unwrap();
        assert_eq!(some_turns(&database, &mut session).await[0], 1);
    }
}

/// Two publishers have passed a parked row, each on its own. When it is redriven both look below what they passed.
#[tokio::test]
async fn a_bound_does_not_hide_what_is_pending_again() {
    let database = testkit::database(migrations("shop")).await;
    let mut one = Session::connect(&options(&database.url)).await.unwrap();
    let mut two = Session::connect(&options(&database.url)).await.unwrap();
    let first = "insert into outbox (aggregate_id, topic, payload) values ('a', 't', '{}')";
    database.client().await.batch_execute(first).await.unwrap();
    let pending = one.pending_shards().await.unwrap();
    let claim = one.claim(&pending, 0, ALL).await.unwrap();
    let parked = [(0, "never".to_owned())];
    claim.settle(Settlement { parked: &parked, ..Settlement::default() }).await.unwrap();
    let ada = outbox::Decider { who: "ada", why: "look" };
    let mut client = database.client().await;
    outbox::decide(&mut client, outbox::Action::SkipHead, 1, ada, false).await.unwrap();
    let shard = shard_of(&database, "a").await;
    until_the_bound_moves(&database, &mut one, shard).await;
    until_the_bound_moves(&database, &mut two, shard).await;

    outbox::decide(&mut client, outbox::Action::Redrive, 1, ada, false).await.unwrap();
    for session in [&mut one, &mut two] {
        let pending = session.pending_shards().await.unwrap();
        assert_eq!(pending, [shard]);
        let claim = session.claim(&pending, 0, ALL).await.unwrap();
        assert_eq!(claim.rows().unwrap()[0].id, 1);
        claim.settle(Settlement::default()).await.unwrap();
    }
}
