//! The whole shop as processes: five services, two publishers, and the infrastructure that a lab or a demo has.

mod orders;
mod services;

pub(crate) use orders::{Ordered, place_and_watch};
pub(crate) use services::{Shop, open};
