//! What a valid order is, and how it ends. Pure: no waiting, no database, no network.

mod invalid;
mod names;
mod new_order;
mod order;
mod saga;

pub use invalid::Invalid;
pub use new_order::{MenuItem, NewOrder, RequestedLine};
pub use order::{Order, PricedOrder};
pub use saga::{Input, OrderStatus, PaymentAnswer, Refused, Saga, Step, StockAnswer};
