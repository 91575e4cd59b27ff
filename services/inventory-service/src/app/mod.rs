//! The use cases, one a file, each with the same steps: begin, load, decide, store and append, commit.

mod reserve_stock;

pub use reserve_stock::reserve_stock;
