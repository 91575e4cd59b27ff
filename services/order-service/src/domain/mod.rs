//! What a valid order is. Pure: no waiting, no database, no network.

mod invalid;
mod new_order;
mod order;

pub use invalid::Invalid;
pub use new_order::{MenuItem, NewOrder, RequestedLine};
pub use order::{Order, OrderStatus, PricedOrder};
