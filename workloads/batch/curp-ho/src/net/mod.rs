//! Moves bytes: readiness, timers and connections, for one thread of events.

mod clock;
mod connection;
mod dial;
mod poll;

pub use clock::{now, sleep_until, usage};
pub use connection::{Connection, Input, State};
pub use dial::Dial;
pub use poll::{Idle, Poll, Ready, Timer, writable_within};
