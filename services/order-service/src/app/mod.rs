//! The use cases, one a file, each with the same steps: begin, load, decide, store and append, commit.

mod apply_answers;
mod cancel_order;
mod expire_orders;
mod get_order;
mod list_orders;
mod place_order;
mod settle;

pub use apply_answers::apply_answers;
pub use cancel_order::cancel_order;
pub use expire_orders::expire_orders;
pub use get_order::get_order;
pub use list_orders::{Page, list_orders};
pub use place_order::{Placed, place_order};
