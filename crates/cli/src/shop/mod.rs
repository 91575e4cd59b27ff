//! The whole shop as processes: five services, two publishers, and the infrastructure that a lab or a demo has.

mod foreground;
mod orders;
mod services;
mod storm;

pub(crate) use foreground::{Args, run};
pub(crate) use orders::{Ordered, place_and_watch};
pub(crate) use services::{ground, open};
pub(crate) use storm::{Args as StormArgs, run as storm};
