//! How many bytes threads can load from their first-level caches: what bounds a kernel that looks everything up.

use std::hint::black_box;

use super::limit::Limit;
use super::read_bandwidth::{LINE, Read};
use super::together::average;
use crate::Quantity;
use crate::simd::Isa;

/// Fits into every first-level cache, and is a whole number of any path's blocks.
const BYTES: usize = 16 << 10;
/// How often a pass reads them: some tenths of a millisecond.
const TIMES: usize = 2000;
const PASSES: usize = 16;

/// Bytes per second that `threads` threads load in whole vectors, each from a first-level cache of its own.
///
/// # Panics
///
/// When there are no threads.
#[must_use]
pub fn cache_reads(isa: Isa, threads: usize) -> Limit {
    let seconds = average(PASSES, threads, |_| {
        // On a cache line, or every other vector would lie across two.
        let room = vec![0; BYTES + LINE];
        let bytes = &room[room.as_ptr().align_offset(LINE)..][..BYTES];
        black_box(isa.run(Read { bytes, times: TIMES, ahead: None }));
    });
    Limit::new(Quantity::bytes_per_second((threads * TIMES * BYTES) as u64, seconds), isa.name(), threads)
}

#[cfg(test)]
mod tests {
    use super::cache_reads;
    use crate::simd::Isa;

    #[test]
    fn every_path_reads_at_some_speed_and_says_how() {
        for isa in Isa::available() {
            let limit = cache_reads(isa, 2);
            assert!(limit.value > 1e7 && limit.value.is_finite(), "{limit:?}");
            assert_eq!((limit.unit.name(), limit.instructions, limit.threads), ("By/s", Some(isa.name()), Some(2)));
        }
    }
}
