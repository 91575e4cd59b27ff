//! Who decides, and why: the same for every decision about what is stuck.

use anyhow::bail;
use clap::Args;
use outbox::Decider;

#[derive(Args)]
pub(crate) struct Because {
    /// Why; written down beside the decision.
    #[arg(long, default_value = "")]
    why: String,
    /// Who decides; written down beside the decision.
    #[arg(long, env = "USER", default_value = "unknown")]
    by: String,
}

impl Because {
    pub(crate) fn decider(&self) -> Decider<'_> {
        Decider { who: &self.by, why: &self.why }
    }

    /// Fails where no reason is given.
    pub(crate) fn must_be_told(&self) -> anyhow::Result<()> {
        if self.why.trim().is_empty() {
            bail!("--why is missing: say why, for whoever looks later");
        }
        Ok(())
    }
}
