//! A publisher that dies at each point of a turn. The whole matrix, by a seed, is in `make test-faults`.

use nix::sys::signal::Signal;

use crate::common::{POINTS, Repeats, Stage, crash_at, end};

#[tokio::test]
async fn a_publisher_that_dies_at_any_point_of_a_turn_loses_nothing() {
    for (point, repeats) in POINTS {
        crash_at(Stage::on(testkit::kafka()).await, (point, 2), 2, repeats).await;
    }
}

/// The same in lanes, where nothing is ever visible twice.
#[tokio::test]
async fn an_exactly_once_publisher_that_dies_at_any_point_of_a_turn_repeats_nothing() {
    let points = POINTS.map(|(point, _)| point).into_iter().chain(["relay-progress-acked"]);
    for point in points {
        crash_at(Stage::exactly_once(testkit::kafka()).await, (point, 2), 2, Repeats::None).await;
    }
}

/// The first commit with a mark goes through `fuse`, which is called by a deferred trigger: after the mark, inside the
/// commit.
async fn with_fuse(stage: &Stage, fuse: &str) {
    let trigger = format!(
        "create sequence fuse;
         create function fuse() returns trigger language plpgsql as
             $$ begin if nextval('fuse') = 1 then perform {fuse}; end if; return null; end $$;
         do $$ declare leaf regclass; begin
             for leaf in select relid from pg_partition_tree('outbox') where isleaf loop
                 execute format('create constraint trigger fuse after update of published_at on %s
                     deferrable initially deferred for each row execute function fuse()', leaf);
             end loop; end $$;"
    );
    stage.database.client().await.batch_execute(&trigger).await.unwrap();
}

/// The server ends the session between mark and commit: the mark is undone, the batch is sent again.
#[tokio::test]
async fn a_mark_that_is_not_committed_is_made_again() {
    let stage = Stage::on(testkit::kafka()).await;
    stage.append(400, 50).await;
    with_fuse(&stage, "pg_terminate_backend(pg_backend_pid())").await;
    let publisher = stage.publisher(&[]);
    stage.until_published().await;
    end(publisher).await;
    assert!(stage.sound().await.repeats > 0);
}

/// The publisher is killed while its commit is under way: the server ends the commit, and nothing is sent again.
#[tokio::test]
async fn a_publisher_that_dies_in_its_commit_repeats_nothing() {
    let stage = Stage::on(testkit::kafka()).await;
    stage.append(400, 50).await;
    with_fuse(&stage, "pg_sleep_for('2s')").await;
    let publisher = stage.publisher(&[]);
    let committing = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event = 'PgSleep'";
    testkit::until("the commit", async || (stage.number(committing).await == 1).then_some(())).await;
    publisher.signal(Signal::SIGKILL);
    assert!(!publisher.ended().await.success());
    stage.drain().await;
    assert_eq!(stage.sound().await.repeats, 0);
}
