//! The use cases, one a file, each with the same steps: begin, load, decide, store and append, commit.

mod apply_orders;
mod get_payment;
mod settle_call;
mod take_call;

pub use apply_orders::apply_orders;
pub use get_payment::get_payment;
pub use settle_call::{give_up_call, postpone_call, settle_call};
pub use take_call::take_call;
