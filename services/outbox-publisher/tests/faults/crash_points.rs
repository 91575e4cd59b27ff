//! Every point, with one, two and four publishers, at a pass that chance chooses.

use crate::{
    chance,
    common::{POINTS, crash_at},
    rounds,
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
                crash_at(point, passes, replicas, repeats).await;
            }
        }
    }
}
