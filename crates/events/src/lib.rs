//! What crosses between services: typed payloads, the envelope around them, and every name that two
//! services must spell alike. Knows no database and no broker.

mod envelope;
pub mod header;
mod ids;
mod payload;
mod place;
pub mod topic;

pub use envelope::{DecodeError, Envelope};
pub use ids::{EventId, IdError, OrderId, OutboxId, Sku};
pub use payload::{
    CancelReason, Event, OrderCancelled, OrderCompleted, OrderConfirmed, OrderCreated, OrderLine,
    PaymentAuthorized, PaymentCaptureFailed, PaymentCaptured, PaymentDeclined, PaymentRefunded,
    PaymentVoided, RejectedLine, ReservedLine, StockCommitted, StockRejected, StockReleased, StockReserved,
};
pub use place::{Place, PlaceError};
