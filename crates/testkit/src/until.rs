//! Waiting for a condition, to a deadline.

use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

/// Asks `condition` until it has an answer, and returns that.
///
/// # Panics
/// When there is none within a minute; the message says `what` was waited for.
pub async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = condition().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {DEADLINE:?} for: {what}");
        tokio::time::sleep(STEP).await;
    }
}
