//! What the clients ask for, and when.

mod arrivals;
mod mix;
mod zipf;

pub use arrivals::{Arrivals, Spacing};
pub use mix::Mix;
pub use zipf::Zipf;
