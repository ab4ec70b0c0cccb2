//! Hardware limits, one probe each, measured by the same process as the work.
//!
//! A probe takes some milliseconds and reports the average of its passes, as a trial does for its work. On a shared
//! machine the best pass of a probe is not attainable for a trial of seconds. The first pass is a warm-up. A probe does
//! nothing but use the resource in question; it is not a stripped-down kernel, because a share of that would not be a
//! share of a limit. Its [`Limit`] records instruction set and threads, which should be those of the workload.

mod aes_rate;
mod arithmetic_rate;
mod cache_reads;
mod limit;
mod loopback_round_trips;
mod masked_xors;
mod random_entries;
mod random_read;
mod read_bandwidth;
mod together;

pub use aes_rate::{aes_rate, aes_rate_with};
pub use arithmetic_rate::arithmetic_rate;
pub use cache_reads::cache_reads;
pub use limit::Limit;
pub use loopback_round_trips::loopback_round_trips;
pub use masked_xors::masked_xors;
pub use random_entries::random_entries;
pub use random_read::random_read;
pub use read_bandwidth::read_bandwidth;
pub use together::average;
