//! Moves bytes: readiness, timers and connections, for one thread of events.

mod clock;
mod connection;
mod poll;

pub use clock::{now, usage};
pub use connection::{Connection, Input, State};
pub use poll::{Poll, Ready, Timer};
