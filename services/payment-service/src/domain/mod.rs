//! What becomes of an order's money. Pure: no waiting, no database, no network.

mod payment;

pub use payment::{Impossible, Next, Operation, Outcome, Payment, Status};
