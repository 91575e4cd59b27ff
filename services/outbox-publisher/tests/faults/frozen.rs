//! A publisher that stands still for longer than any timeout, and then goes on as if nothing had been.

use nix::sys::signal::Signal;

use crate::{
    chance,
    common::{Stage, end},
    rounds,
};

/// As short as they may be, so that the test need not wait for long.
const SHORT: [(&str, &str); 4] = [
    ("BREW__RELAY__SEND_DEADLINE_MS", "500"),
    ("BREW__RELAY__SEND_DEADLINE_CAP_MS", "1000"),
    ("BREW__RELAY__IDLE_IN_TRANSACTION_TIMEOUT_MS", "6500"),
    ("BREW__RELAY__KEEPALIVE_MS", "9000"),
];

/// It is frozen with shards locked and their rows read, before a byte is sent. Postgres ends its claim, another
/// publishes those rows and newer ones of the same aggregates. Thawed, it sends what it has: repeats, never an event
/// before an earlier one of its aggregate, and no mark. Then it takes part again.
#[tokio::test]
async fn a_publisher_that_is_frozen_in_its_claim_comes_back_and_does_no_harm() {
    let mut chance = chance("frozen");
    for _ in 0..rounds() {
        let stage = Stage::on(testkit::kafka()).await;
        stage.append(1000, 50).await;
        let points = format!("relay-claimed={}*off->1*delay(2000)->off", chance.u32(0..10));
        let frozen = stage.publisher(&[&SHORT[..], &[("FAILPOINTS", &points)]].concat());
        // No other claim lasts so long.
        let in_claim = "select count(*) from pg_stat_activity
                         where datname = current_database() and application_name = 'brew-relay'
                           and state = 'idle in transaction'
                           and clock_timestamp() - state_change > interval '600 milliseconds'";
        testkit::until("its claim", async || (stage.number(in_claim).await == 1).then_some(())).await;
        frozen.signal(Signal::SIGSTOP);
        stage.append(1000, 50).await;
        let other = stage.publisher(&SHORT);
        stage.until_published().await;
        end(other).await;
        frozen.signal(Signal::SIGCONT);
        stage.append(1000, 50).await;
        stage.until_published().await;
        end(frozen).await;
        assert!(stage.sound().await.repeats > 0, "the thawed publisher sent nothing of what it had");
    }
}
