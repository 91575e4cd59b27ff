//! Bugs that are put in on purpose, one for each thing that `brew verify` is to find. They exist only in builds with
//! the feature `seeded-bugs`, which tests switch on; any other build refuses to start when one is asked for.

use std::sync::OnceLock;

/// Names the bug that this process is to have.
pub const VARIABLE: &str = "BREW_SEEDED_BUG";

/// What can be wrong. The names are kept stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Relay: marks a whole batch and sends the half of it.
    MarksUnsent,
    /// Relay: draws an event id at each send, instead of passing on the row's.
    ForgesEventId,
    /// Relay: sends each record a second time, from a payload that it has written anew.
    RewritesCopies,
    /// Relay: sends a batch last row first.
    SendsBackwards,
    /// Relay: never looks at the upper half of the shards.
    LeavesShards,
    /// Inventory: passes over some events, and commits their offsets.
    SwallowsEvents,
    /// Inventory: answers each event twice.
    AnswersTwice,
    /// Inventory: reserves without taking from the shelf.
    LeavesShelf,
    /// Payment: believes that a capture worked without asking the provider.
    BelievesCapture,
    /// Payment: a new idempotency key for each try.
    NewKeyPerTry,
    /// Order: does not hear that the money is captured.
    IgnoresCapture,
}

impl Bug {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::MarksUnsent,
        Self::ForgesEventId,
        Self::RewritesCopies,
        Self::SendsBackwards,
        Self::LeavesShards,
        Self::SwallowsEvents,
        Self::AnswersTwice,
        Self::LeavesShelf,
        Self::BelievesCapture,
        Self::NewKeyPerTry,
        Self::IgnoresCapture,
    ];

    /// The value of [`VARIABLE`] that asks for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MarksUnsent => "marks-unsent",
            Self::ForgesEventId => "forges-event-id",
            Self::RewritesCopies => "rewrites-copies",
            Self::SendsBackwards => "sends-backwards",
            Self::LeavesShards => "leaves-shards",
            Self::SwallowsEvents => "swallows-events",
            Self::AnswersTwice => "answers-twice",
            Self::LeavesShelf => "leaves-shelf",
            Self::BelievesCapture => "believes-capture",
            Self::NewKeyPerTry => "new-key-per-try",
            Self::IgnoresCapture => "ignores-capture",
        }
    }
}

/// Why a process does not start with the bug that [`VARIABLE`] names.
#[derive(Debug, thiserror::Error)]
pub enum NoSuchBug {
    /// Not in this build.
    #[error("{VARIABLE} is set, but this build has no seeded bugs; only tests' builds have (`make test`)")]
    NotBuilt,
    /// Nowhere.
    #[error("{VARIABLE}={0} is no seeded bug")]
    Unknown(String),
}

static SEEDED: OnceLock<Option<Bug>> = OnceLock::new();

/// Reads [`VARIABLE`].
pub(crate) fn arm_from_env() -> Result<(), NoSuchBug> {
    let Ok(name) = std::env::var(VARIABLE) else { return Ok(()) };
    if !cfg!(feature = "seeded-bugs") {
        return Err(NoSuchBug::NotBuilt);
    }
    let bug = Bug::ALL.into_iter().find(|bug| bug.name() == name).ok_or(NoSuchBug::Unknown(name))?;
    tracing::warn!(bug = bug.name(), "SEEDED BUG: this process does wrong on purpose");
    SEEDED.get_or_init(|| Some(bug));
    Ok(())
}

/// Whether this process is to have `bug`; never, without the feature `seeded-bugs`.
#[must_use]
pub fn seeded(bug: Bug) -> bool {
    cfg!(feature = "seeded-bugs") && SEEDED.get().copied().flatten() == Some(bug)
}
