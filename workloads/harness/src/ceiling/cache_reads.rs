//! Load bandwidth of threads from their first-level caches, the limit of kernels dominated by table lookups.

use std::hint::black_box;

use super::limit::Limit;
use super::read_bandwidth::{LINE, Read};
use super::together::average;
use crate::Quantity;
use crate::simd::Isa;

/// Fits into every first-level cache, and is a multiple of every path's block size.
const BYTES: usize = 16 << 10;
/// Number of reads per pass; some tenths of a millisecond.
const TIMES: usize = 2000;
const PASSES: usize = 16;

/// Bytes per second that `threads` threads load in whole vectors, each from its first-level cache.
///
/// # Panics
///
/// If `threads` is zero.
#[must_use]
pub fn cache_reads(isa: Isa, threads: usize) -> Limit {
    let seconds = average(PASSES, threads, |_| {
        // Aligned to a cache line, because otherwise every other vector would cross a line.
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
    fn every_path_reports_rate_and_instructions() {
        for isa in Isa::available() {
            let limit = cache_reads(isa, 2);
            assert!(limit.value > 1e7 && limit.value.is_finite(), "{limit:?}");
            assert_eq!((limit.unit.name(), limit.instructions, limit.threads), ("By/s", Some(isa.name()), Some(2)));
        }
    }
}
