//! Names of states, as they stand in the database.

use super::saga::{OrderStatus, PaymentAnswer, StockAnswer};

impl OrderStatus {
    /// As it stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Confirmed => "confirmed",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Confirmed, Self::Cancelled, Self::Completed]
            .into_iter()
            .find(|one| one.as_str() == text)
    }
}

impl StockAnswer {
    /// As it stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reserved => "reserved",
            Self::Rejected => "rejected",
            Self::Committed => "committed",
            Self::Released => "released",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::Reserved, Self::Rejected, Self::Committed, Self::Released]
            .into_iter()
            .find(|one| one.as_str() == text)
    }
}

impl PaymentAnswer {
    /// As it stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Authorized => "authorized",
            Self::Declined => "declined",
            Self::Captured => "captured",
            Self::CaptureFailed => "capture_failed",
            Self::Voided => "voided",
            Self::Refunded => "refunded",
        }
    }

    /// From the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::None,
            Self::Authorized,
            Self::Declined,
            Self::Captured,
            Self::CaptureFailed,
            Self::Voided,
            Self::Refunded,
        ]
        .into_iter()
        .find(|one| one.as_str() == text)
    }
}
