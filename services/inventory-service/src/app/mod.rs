//! The use cases, one a file, each with the same steps: begin, load, decide, store and append, commit.

mod apply_orders;
mod find_stock;
mod restock;

pub use apply_orders::apply_orders;
pub use find_stock::{get_stock, list_stock};
pub use restock::restock;
