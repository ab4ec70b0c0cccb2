//! The clients' commands and their times.

mod arrivals;
mod mix;
mod zipf;

pub use arrivals::{Arrivals, Spacing};
pub use mix::Mix;
pub use zipf::Zipf;
