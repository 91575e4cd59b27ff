//! Every point, with one, two and four publishers, at a pass that chance chooses.

use nix::sys::signal::Signal;

use crate::{
    chance,
    common::{POINTS, Stage, crash_at},
    number, rounds,
};

/// A batch has 40 records, so up to five batches.
const RECORDS: u32 = 200;
const TURNS: u32 = 5;

#[tokio::test]
async fn a_publisher_that_dies_at_any_pass_of_any_point_loses_nothing() {
    let mut chance = chance("crash points");
    for _ in 0..rounds() {
        for (point, repeats) in POINTS {
            for replicas in [1, 2, 4] {
                let passes = match point {
                    "producer-enqueued" | "producer-acked" => chance.u32(0..RECORDS),
                    _ => chance.u32(0..TURNS),
                };
                crash_at(Stage::on(testkit::kafka()).await, (point, passes), replicas, repeats).await;
            }
        }
    }
}

/// One publisher after the other is killed, at a moment that chance chooses, `BREW_KILLS` times (1,000), while events
/// come all the time. A reader of what is committed meets each event once.
#[tokio::test]
async fn exactly_once_outlives_a_thousand_kills() {
    let kills = number("BREW_KILLS").unwrap_or(1000);
    let mut chance = chance("kills");
    let stage = Stage::exactly_once(testkit::kafka()).await;
    let begun = "select count(*) from pg_stat_activity
                  where datname = current_database() and application_name = 'brew-relay'";
    for kill in 1..=kills {
        if stage.pending().await < 400 {
            stage.append(400, 50).await;
        }
        let publisher = stage.publisher(&[]);
        testkit::until("sessions", async || (stage.number(begun).await > 0).then_some(())).await;
        let before = stage.pending().await;
        // Some die before they have sent anything, some after several batches.
        let enough = i64::from(chance.u32(0..4)) * 40;
        testkit::until("progress", async || (before - stage.pending().await >= enough).then_some(())).await;
        publisher.signal(Signal::SIGKILL);
        publisher.ended().await;
        if kill % 100 == 0 {
            eprintln!("{kill} kills");
        }
    }
    stage.drain().await;
    assert_eq!(stage.sound().await.repeats, 0, "after {kills} kills");
}
