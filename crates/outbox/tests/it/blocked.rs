//! Rows that cannot be sent: their aggregates wait, at no cost to others, until somebody decides.

use std::time::Duration;

use outbox::{
    Action, ClaimLimits, Decider, Error, Session, Settlement, decide, explain, migrations, parked, pause,
    status,
};
use testkit::TestDatabase;

use crate::schema::options;

const ALL: ClaimLimits = ClaimLimits { max_shards: 64, max_rows: 1000 };
const ADA: Decider<'_> = Decider { who: "ada", why: "tried it" };

/// A relay in small: sends all rows but those of type `bad`, which it sets aside. Returns what it sent, in order.
async fn turn(session: &mut Session, pause: Option<Duration>) -> Vec<i64> {
    let pending = session.pending_shards().await.unwrap();
    let claim = session.claim(&pending, 0, ALL).await.unwrap();
    let rows = claim.rows().unwrap();
    let sent: Vec<i64> = rows.iter().filter(|row| row.event_type != "bad").map(|row| row.id).collect();
    let positions = |bad: bool| {
        let found = rows.iter().enumerate().filter(move |(_, row)| (row.event_type == "bad") == bad);
        found.map(|(position, _)| position)
    };
    let held: std::collections::BTreeSet<&str> =
        rows.iter().filter(|row| row.event_type == "bad").map(|row| row.aggregate_id).collect();
    let acknowledged: Vec<usize> =
        positions(false).filter(|position| !held.contains(rows[*position].aggregate_id)).collect();
    let (mut waiting, mut parked) = (Vec::new(), Vec::new());
    for position in positions(true) {
        match pause {
            Some(pause) => waiting.push((position, "not now".to_owned(), pause)),
            None => parked.push((position, "never".to_owned())),
        }
    }
    let sent = sent.into_iter().filter(|id| acknowledged.iter().any(|at| rows[*at].id == *id)).collect();
    drop(rows);
    let settlement = Settlement {
        acknowledged: &acknowledged,
        waiting: &waiting,
        parked: &parked,
        ..Settlement::default()
    };
    claim.settle(settlement).await.unwrap();
    sent
}

async fn insert(database: &TestDatabase, aggregate: &str, event_type: &str, count: u32) {
    let insert = format!(
        "insert into outbox (aggregate_id, topic, payload, event_type)
         select '{aggregate}', 't', '{{}}', '{event_type}' from generate_series(1, {count})"
    );
    database.client().await.batch_execute(&insert).await.unwrap();
}

/// Row 1 of `a` is bad, 2 and 3 are behind it, 4 is of another aggregate; all is set aside or sent.
async fn stopped(pause: Option<Duration>) -> (TestDatabase, Session) {
    let database = testkit::database(migrations("shop")).await;
    insert(&database, "a", "bad", 1).await;
    insert(&database, "a", "good", 2).await;
    insert(&database, "b", "good", 1).await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    assert_eq!(turn(&mut session, pause).await, [4]);
    assert_eq!(turn(&mut session, pause).await, [0_i64; 0], "the rows behind are set aside");
    assert!(session.pending_shards().await.unwrap().is_empty(), "nothing is left for a claim");
    (database, session)
}

#[tokio::test]
async fn a_parked_row_holds_back_its_aggregate_and_no_other() {
    let (database, mut session) = stopped(None).await;
    let found = parked(&database.client().await, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].outbox_id, found[0].behind, found[0].parked), (1, 2, true));
    assert_eq!((found[0].reason.as_str(), found[0].attempts), ("never", 1));
    // What comes later waits too, also after a while.
    insert(&database, "a", "good", 1).await;
    assert_eq!(turn(&mut session, None).await, [0_i64; 0]);
    let status = status(&database.client().await).await.unwrap();
    assert_eq!((status.parked, status.pending, status.published), (1, 3, 1));
    assert!(!session.waits().await.unwrap(), "a person decides");
}

#[tokio::test]
async fn redrive_sends_the_row_first_and_then_what_waited() {
    let (database, mut session) = stopped(None).await;
    let mut client = database.client().await;
    client.batch_execute("update outbox set event_type = 'good' where id = 1").await.unwrap();
    let dry = decide(&mut client, Action::Redrive, 1, ADA, true).await.unwrap();
    assert_eq!((dry.outbox_id, dry.behind), (1, 2));
    assert!(session.pending_shards().await.unwrap().is_empty(), "a dry run does nothing");

    decide(&mut client, Action::Redrive, 1, ADA, false).await.unwrap();
    // A row that comes just now does not overtake.
    insert(&database, "a", "good", 1).await;
    assert_eq!(turn(&mut session, None).await, [1]);
    assert_eq!(turn(&mut session, None).await, [2, 3, 5]);
    assert_eq!(database.number("select count(*) from outbox_blocked").await, 0);
    let written = "select count(*) from outbox_decisions where action = 'redrive' and outbox_id = 1
                      and aggregate_id = 'a' and by_whom = 'ada' and why = 'tried it'";
    assert_eq!(database.number(written).await, 1);
}

#[tokio::test]
async fn a_redriven_row_that_is_still_bad_is_parked_again() {
    let (database, mut session) = stopped(None).await;
    let mut client = database.client().await;
    decide(&mut client, Action::Redrive, 1, ADA, false).await.unwrap();
    assert_eq!(turn(&mut session, None).await, [0_i64; 0]);
    let found = parked(&client, 10).await.unwrap();
    assert_eq!((found[0].attempts, found[0].parked, found[0].behind), (2, true, 2));
    assert!(session.pending_shards().await.unwrap().is_empty());
}

#[tokio::test]
async fn skipped_and_discarded_rows_let_their_aggregate_go_on() {
    for action in [Action::SkipHead, Action::Discard] {
        let (database, mut session) = stopped(None).await;
        let mut client = database.client().await;
        decide(&mut client, action, 1, ADA, false).await.unwrap();
        assert_eq!(turn(&mut session, None).await, [2, 3], "{action:?}");
        let status = status(&client).await.unwrap();
        let left = if action == Action::Discard { (0, 1) } else { (1, 0) };
        assert_eq!((status.parked, status.discarded), left, "{action:?}");
    }
}

/// Skipped is not lost: it can still be sent, behind its successors.
#[tokio::test]
async fn a_skipped_row_can_be_redriven_later() {
    let (database, mut session) = stopped(None).await;
    let mut client = database.client().await;
    decide(&mut client, Action::SkipHead, 1, ADA, false).await.unwrap();
    assert_eq!(turn(&mut session, None).await, [2, 3]);
    client.batch_execute("update outbox set event_type = 'good' where id = 1").await.unwrap();
    decide(&mut client, Action::Redrive, 1, ADA, false).await.unwrap();
    assert_eq!(turn(&mut session, None).await, [1]);
    assert_eq!(database.number("select count(*) from outbox where published_at is null").await, 0);
}

#[tokio::test]
async fn nothing_is_decided_about_rows_that_can_be_sent() {
    let (database, _) = stopped(None).await;
    let mut client = database.client().await;
    for id in [2, 4, 99] {
        for action in [Action::Redrive, Action::SkipHead, Action::Discard] {
            let refused = decide(&mut client, action, id, ADA, false).await;
            assert!(matches!(refused, Err(Error::NotParked(found)) if found == id), "{action:?} {id}");
        }
    }
    assert_eq!(database.number("select count(*) from outbox_decisions").await, 0);
}

#[tokio::test]
async fn a_row_that_waits_is_tried_again_by_itself() {
    let (database, mut session) = stopped(Some(Duration::from_millis(200))).await;
    assert!(session.waits().await.unwrap());
    let client = database.client().await;
    assert!(!parked(&client, 10).await.unwrap()[0].parked);
    client.batch_execute("update outbox set event_type = 'good' where id = 1").await.unwrap();
    let sent = testkit::until("the row to be tried again", async || {
        let sent = turn(&mut session, None).await;
        (!sent.is_empty()).then_some(sent)
    })
    .await;
    assert_eq!(sent, [1]);
    assert_eq!(turn(&mut session, None).await, [2, 3]);
    assert!(!session.waits().await.unwrap());
}

/// Somebody deletes the row, or marks it by hand: its aggregate does not wait for ever.
#[tokio::test]
async fn an_aggregate_does_not_wait_for_a_row_that_is_gone() {
    let (database, mut session) = stopped(Some(Duration::from_secs(3600))).await;
    let gone = "delete from outbox where id = 1; update outbox_blocked set retry_at = clock_timestamp()";
    database.client().await.batch_execute(gone).await.unwrap();
    assert_eq!(turn(&mut session, None).await, [0_i64; 0]);
    assert_eq!(turn(&mut session, None).await, [2, 3]);
}

#[tokio::test]
async fn a_paused_outbox_has_nothing_to_send() {
    let database = testkit::database(migrations("shop")).await;
    insert(&database, "a", "good", 2).await;
    let mut session = Session::connect(&options(&database.url)).await.unwrap();
    let mut client = database.client().await;
    assert!(pause(&mut client, true, ADA).await.unwrap());
    assert!(!pause(&mut client, true, ADA).await.unwrap(), "as before");
    assert!(session.pending_shards().await.unwrap().is_empty());
    let why = explain(&mut client, 1).await.unwrap().unwrap();
    assert_eq!(
        (why.paused.as_deref(), why.advice().as_str()),
        (Some("ada: tried it"), "`brew outbox resume`")
    );
    assert!(pause(&mut client, false, ADA).await.unwrap());
    assert_eq!(turn(&mut session, None).await, [1, 2]);
    assert_eq!(database.number("select count(*) from outbox_decisions").await, 2);
}

#[tokio::test]
async fn a_row_is_explained() {
    let (database, mut session) = stopped(None).await;
    let mut client = database.client().await;
    let mut state = async |id| {
        let found = explain(&mut client, id).await.unwrap().unwrap();
        (found.state, found.waits_for)
    };
    assert_eq!(state(1).await, ("parked", None));
    assert_eq!(state(2).await, ("retrying", Some(1)));
    assert_eq!(state(4).await, ("published", None));
    insert(&database, "c", "good", 3).await;
    let found = explain(&mut client, 7).await.unwrap().unwrap();
    assert_eq!((found.state, found.before, found.claimed), ("pending", 2, false));
    let pending = session.pending_shards().await.unwrap();
    let claim = session.claim(&pending, 0, ALL).await.unwrap();
    assert!(explain(&mut client, 7).await.unwrap().unwrap().claimed);
    drop(claim);
    assert!(explain(&mut client, 99).await.unwrap().is_none());
}
