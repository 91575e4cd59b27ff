//! The use cases, one a file, each with the same steps: begin, load, decide, store and append, commit.

mod get_order;
mod list_orders;
mod place_order;

pub use get_order::get_order;
pub use list_orders::{Page, list_orders};
pub use place_order::{Placed, place_order};
