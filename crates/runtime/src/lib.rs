//! What every service does alike: signals to one shutdown token, supervised tasks, health, crash points, and seeded
//! bugs for tests.

pub mod fault;
mod health;
mod probe;
pub mod seeded;
mod shutdown;
mod supervise;

pub use health::{AdminOptions, Health, serve_admin, watch};
pub use probe::healthcheck;
pub use shutdown::shutdown_token;
pub use supervise::{Error, Supervisor};
