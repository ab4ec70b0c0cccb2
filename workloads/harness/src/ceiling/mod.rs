//! Physical limits, one probe each: what the machine can do, measured by the same process as the work.
//!
//! A probe takes some milliseconds and reports the average of its passes, as a trial reports that of its work: on a machine that others
//! use too, the best moment of a probe is not what a trial of seconds could have reached. A first pass, which pays for what is cold, does
//! not count. A probe does what the hardware is asked for and nothing else: a share of a kernel of one's own is not a share of a limit. Its
//! [`Limit`] says with which instructions and by how many threads it was measured; those should be the workload's own.

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
