//! A lower bound on id, by shard, so that a claim need not pass the dead index entries of what is published already.
//! While somebody holds an old snapshot nothing can clean them up, and without a bound each claim would read more.
//!
//! Nothing is skipped by "greater than the last seen": ids commit out of order. A bound is *proved*, by two looks. Let
//! `m` be the first pending id of a shard that a claim saw, and X the id of a transaction that began after that look.
//! Every transaction that drew an id below `m` had its own transaction id before it drew (the writer's contract: the
//! aggregate's lock comes first, and the SQL function `outbox_append` sees to it), and so before X. When all
//! transactions up to X have ended, each row below `m` is visible or will never be there. So if a second look, begun
//! then, still finds nothing pending below `m`, the shard has nothing to send there, unless rows become pending again;
//! whoever does that raises the shard's epoch. Without the second look a row that was committed between the two would
//! be passed over.
//!
//! Writers outside the contract are found by a walk without bounds, once a minute or less often if it takes long.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::SHARDS;

/// At least so long between two walks.
const WALK_EVERY: Duration = Duration::from_secs(60);
/// A walk takes at most this part of the time: one in twenty.
const WALK_SHARE: u32 = 20;

const COUNT: usize = SHARDS as usize;

/// What one session knows.
#[derive(Debug)]
pub(crate) struct Bounds {
    shards: [Bound; COUNT],
    walking: bool,
    next_walk: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bound {
    /// Nothing at or below it is to be sent.
    low: i64,
    /// In this epoch of the shard.
    epoch: i64,
    proof: Option<Proof>,
}

/// A first pending id, which becomes a bound when every transaction up to `after` has ended.
#[derive(Debug, Clone, Copy)]
struct Proof {
    first: i64,
    after: Option<i64>,
    /// They have: the look that comes now is the second.
    ended: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        let shards = [Bound::default(); COUNT];
        Self { shards, walking: false, next_walk: Instant::now() + WALK_EVERY }
    }
}

impl Bounds {
    /// For a look at all shards: their bounds and epochs, in their order.
    pub(crate) fn all(&mut self) -> (Vec<i64>, Vec<i64>) {
        self.walk_if_due();
        let low = |shard: &Bound| if self.walking { 0 } else { shard.low };
        (self.shards.iter().map(low).collect(), self.shards.iter().map(|shard| shard.epoch).collect())
    }

    /// For a fetch: the bounds of `shards`.
    pub(crate) fn of(&self, shards: &[i16]) -> Vec<i64> {
        shards.iter().map(|shard| if self.walking { 0 } else { self.low(*shard) }).collect()
    }

    /// A claim has begun: its transaction's id, and the oldest transaction that has not ended.
    pub(crate) fn begun(&mut self, transaction: i64, oldest: i64) {
        self.walk_if_due();
        for proof in self.shards.iter_mut().filter_map(|shard| shard.proof.as_mut()) {
            match proof.after {
                None => proof.after = Some(transaction),
                Some(after) => proof.ended = oldest > after,
            }
        }
    }

    /// Of a locked shard: rows have become pending again since the epoch that is known here.
    pub(crate) fn locked(&mut self, shard: i16, epoch: i64) {
        if let Some(known) = self.shards.get_mut(index(shard)).filter(|known| known.epoch != epoch) {
            *known = Bound { low: 0, epoch, proof: None };
        }
    }

    /// A fetch from `shards` has found these first pending ids, by shard, and took so long. If it was `cut`, a shard
    /// without an id may have one.
    pub(crate) fn seen(&mut self, shards: &[i16], first: &BTreeMap<i16, i64>, cut: bool, took: Duration) {
        self.walked(took);
        for shard in shards {
            let Some(bound) = self.shards.get_mut(index(*shard)) else { continue };
            let now = first.get(shard).copied();
            if cut && now.is_none() {
                continue;
            }
            if let Some(proof) = bound.proof.take_if(|proof| proof.ended)
                && now.is_none_or(|now| now >= proof.first)
            {
                bound.low = bound.low.max(proof.first - 1);
            }
            if let (None, Some(first)) = (bound.proof, now) {
                bound.proof = Some(Proof { first, after: None, ended: false });
            }
        }
    }

    /// A look at all shards that found nothing, or a fetch, has ended, and took so long.
    pub(crate) fn walked(&mut self, took: Duration) {
        if self.walking {
            self.walking = false;
            self.next_walk = Instant::now() + WALK_EVERY.max(took * WALK_SHARE);
        }
    }

    /// The bound of one shard.
    pub(crate) fn low(&self, shard: i16) -> i64 {
        self.shards.get(index(shard)).map_or(0, |shard| shard.low)
    }

    /// The looks from here to the next fetch are without bounds, when it is time.
    fn walk_if_due(&mut self) {
        self.walking = Instant::now() >= self.next_walk;
    }
}

fn index(shard: i16) -> usize {
    usize::try_from(shard).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: [i16; 2] = [6, 7];

    fn look(bounds: &mut Bounds, transaction: i64, oldest: i64, first: i64) -> i64 {
        bounds.begun(transaction, oldest);
        bounds.seen(&SHARDS, &BTreeMap::from([(7, first)]), false, Duration::ZERO);
        bounds.low(7)
    }

    #[test]
    fn a_bound_waits_for_every_transaction_that_may_know_a_lower_id() {
        let mut bounds = Bounds::default();
        assert_eq!(look(&mut bounds, 49, 49, 100), 0);
        // The next claim's transaction began after the look; an older one, 48, is still open.
        assert_eq!(look(&mut bounds, 50, 48, 110), 0);
        assert_eq!(look(&mut bounds, 51, 48, 120), 0);
        assert_eq!(look(&mut bounds, 52, 50, 130), 0, "50 itself has not ended");
        assert_eq!(look(&mut bounds, 53, 51, 140), 99);
        assert_eq!(bounds.of(&SHARDS), [0, 99]);
    }

    #[test]
    fn what_was_committed_between_the_two_looks_is_not_passed_over() {
        let mut bounds = Bounds::default();
        look(&mut bounds, 49, 49, 100);
        look(&mut bounds, 50, 49, 110);
        assert_eq!(look(&mut bounds, 51, 51, 90), 0, "90 came late");
        look(&mut bounds, 52, 52, 120);
        assert_eq!(look(&mut bounds, 53, 53, 130), 89, "as the second look saw it");
    }

    #[test]
    fn a_shard_that_others_held_is_not_proved() {
        let mut bounds = Bounds::default();
        look(&mut bounds, 49, 49, 100);
        look(&mut bounds, 50, 49, 110);
        bounds.begun(51, 51);
        bounds.seen(&[6], &BTreeMap::new(), false, Duration::ZERO);
        assert_eq!(bounds.low(7), 0);
        assert_eq!(look(&mut bounds, 52, 52, 120), 99, "but keeps what was seen of it");
    }

    #[test]
    fn a_shard_that_the_limit_cut_off_is_not_proved() {
        let mut bounds = Bounds::default();
        look(&mut bounds, 49, 49, 100);
        look(&mut bounds, 50, 49, 110);
        bounds.begun(51, 51);
        bounds.seen(&SHARDS, &BTreeMap::from([(6, 90)]), true, Duration::ZERO);
        assert_eq!(bounds.low(7), 0, "90 of shard 7 may have come late");
    }

    #[test]
    fn an_epoch_takes_bound_and_proof_back() {
        let mut bounds = Bounds::default();
        look(&mut bounds, 49, 49, 100);
        look(&mut bounds, 50, 50, 110);
        assert_eq!(look(&mut bounds, 51, 51, 200), 99);
        bounds.begun(52, 52);
        bounds.locked(7, 1);
        assert_eq!(bounds.low(7), 0);
        assert_eq!(look(&mut bounds, 53, 53, 210), 0, "what was seen before the epoch proves nothing");
    }
}
