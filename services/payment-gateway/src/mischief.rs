//! What a call is to suffer: by its token, or by chance that is the same every time.

use sha2::{Digest, Sha256};

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mischief {
    /// It does not.
    None,
    /// It takes long, then all is well.
    Slow,
    /// It never answers, and nothing is done.
    Hang,
    /// It is done, and the answer never comes.
    LoseReply,
    /// 500, and nothing is done.
    FailBefore,
    /// It is done, and the answer is 500.
    FailAfter,
    /// 429.
    TooMany,
}

const BY_CHANCE: [Mischief; 6] = [
    Mischief::Slow,
    Mischief::Hang,
    Mischief::LoseReply,
    Mischief::FailBefore,
    Mischief::FailAfter,
    Mischief::TooMany,
];

/// Decides. `attempt` counts from 1; what a token asks for befalls the first attempt of each call only, so that
/// the same key and bytes succeed later.
pub(crate) fn decide(token: &str, key: &str, attempt: i64, percent: u64) -> Mischief {
    if attempt == 1 {
        let asked = match token {
            "tok_slow" => Mischief::Slow,
            "tok_hang_once" => Mischief::Hang,
            "tok_timeout_once" => Mischief::LoseReply,
            "tok_500_before_once" => Mischief::FailBefore,
            "tok_500_after_once" => Mischief::FailAfter,
            "tok_429_once" => Mischief::TooMany,
            _ => Mischief::None,
        };
        if asked != Mischief::None {
            return asked;
        }
    }
    let hash = Sha256::digest(format!("{key}/{attempt}"));
    let (chance, kind) = (u64::from(hash[0]) * 256 + u64::from(hash[1]), usize::from(hash[2]));
    if chance % 100 < percent { BY_CHANCE[kind % BY_CHANCE.len()] } else { Mischief::None }
}

/// Why the card's bank says no, if it does: by token, or by an amount that ends in 66.
pub(crate) fn declined(operation: &str, token: &str, amount_minor: i64) -> Option<&'static str> {
    match (operation, token) {
        ("authorize", "tok_declined") => Some("card_declined"),
        ("capture", "tok_capture_declined") => Some("authorization_expired"),
        ("authorize", _) if amount_minor % 100 == 66 => Some("insufficient_funds"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_befall_the_first_attempt_only() {
        assert_eq!(decide("tok_timeout_once", "k", 1, 0), Mischief::LoseReply);
        assert_eq!(decide("tok_timeout_once", "k", 2, 0), Mischief::None);
        assert_eq!(decide("", "k", 1, 0), Mischief::None);
    }

    #[test]
    fn chance_is_as_large_as_set_and_the_same_every_time() {
        let hits = |percent| {
            (0..10_000).filter(|n| decide("", &format!("key-{n}"), 1, percent) != Mischief::None).count()
        };
        assert_eq!(hits(0), 0);
        assert!((2_500..3_500).contains(&hits(30)));
        assert_eq!(hits(30), hits(30));
    }
}
