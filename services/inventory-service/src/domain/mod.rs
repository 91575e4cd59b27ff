//! What can be set aside. Pure: no waiting, no database, no network.

mod reservation;

pub use reservation::{Levels, NotReserved, Reservation, Status};
