//! Crash points for demonstrations: places where the process can be made to die for real. They are armed by one
//! environment variable and by nothing else, and an armed process says so when it starts.
//!
//! Tests have more of them, the fail points of the `fail` crate, which only builds with the feature `seeded-bugs` have;
//! there `FAILPOINTS=relay-claimed=2*off->return` aborts the process when it passes the point for the third time
//! (docs/decisions/0011).

use std::{io::Write, sync::OnceLock};

use crate::seeded;

/// Names the point at which this process is to abort.
pub const VARIABLE: &str = "BREW_FAULT_INJECTION";

/// Where a process can be made to die. The names are kept stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// Relay: all records of a batch are acknowledged, no row is marked.
    AfterAckBeforeMark,
    /// Consumer: the business transaction is committed, the offset is not.
    AfterCommitBeforeOffset,
}

impl CrashPoint {
    /// The value of [`VARIABLE`] that arms it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AfterAckBeforeMark => "after-ack-before-mark",
            Self::AfterCommitBeforeOffset => "after-commit-before-offset",
        }
    }
}

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// [`VARIABLE`] names no crash point.
    #[error(
        "{VARIABLE}={0} is no crash point; there are `after-ack-before-mark` and `after-commit-before-offset`"
    )]
    UnknownPoint(String),
    /// Fail points are asked for that this build does not have.
    #[error("FAILPOINTS is set, but this build has no fail points; only tests' builds have (`make test`)")]
    NoFailPoints,
    /// A bug is asked for that this build does not have.
    #[error(transparent)]
    Bug(#[from] seeded::NoSuchBug),
}

static ARMED: OnceLock<Option<CrashPoint>> = OnceLock::new();

/// Reads [`VARIABLE`], [`seeded::VARIABLE`] and `FAILPOINTS`; call it once at start.
///
/// # Errors
/// When a variable names what there is not.
pub fn arm_from_env() -> Result<(), Error> {
    seeded::arm_from_env()?;
    if let Ok(points) = std::env::var("FAILPOINTS") {
        if !fail::has_failpoints() {
            return Err(Error::NoFailPoints);
        }
        tracing::warn!(points, "FAULT INJECTION: this process goes wrong on purpose");
        // Dropped, it would take the points back.
        std::mem::forget(fail::FailScenario::setup());
    }
    let point = match std::env::var(VARIABLE) {
        Err(_) => None,
        Ok(name) => Some(
            [CrashPoint::AfterAckBeforeMark, CrashPoint::AfterCommitBeforeOffset]
                .into_iter()
                .find(|point| point.name() == name)
                .ok_or(Error::UnknownPoint(name))?,
        ),
    };
    if let Some(point) = point {
        tracing::warn!(point = point.name(), "FAULT INJECTION: this process will abort on purpose");
    }
    ARMED.get_or_init(|| point);
    Ok(())
}

/// Aborts the process, without unwinding, draining or flushing, if `point` is armed. Prints one `CRASH` line first.
pub fn crash_if_armed(point: CrashPoint, detail: impl FnOnce() -> String) {
    if ARMED.get().copied().flatten() == Some(point) {
        // Written by hand: a closed standard output must not turn the crash into a panic.
        let mut out = std::io::stdout().lock();
        let _closed = writeln!(out, "CRASH {}: {}", point.name(), detail()).and_then(|()| out.flush());
        std::process::abort();
    }
}
