//! Physical limits, one probe each: what the machine can do at best, measured by the same process as the work.
//!
//! A probe takes a few milliseconds and reports the best of its passes, for a limit is what is possible, not what is usual.

mod aes_rate;
mod random_lines;
mod random_read;
mod read_bandwidth;

pub use aes_rate::aes_rate;
pub use random_lines::random_lines;
pub use random_read::random_read;
pub use read_bandwidth::read_bandwidth;
