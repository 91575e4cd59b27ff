//! A person's decision about what is stuck is written down with who and why.

/// Who decides, and why.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    /// A person's name.
    pub who: &'a str,
    /// For whoever looks later.
    pub why: &'a str,
}
