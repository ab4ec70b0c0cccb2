//! Read bandwidth of threads: vector loads with one XOR each.

use std::hint::black_box;

use super::limit::Limit;
use super::together::average;
use crate::Quantity;
use crate::simd::{Isa, Kernel, Simd};

/// Reads all `parts` in `passes` passes after a warm-up pass, and returns the average bandwidth. Every thread reads its
/// share of every part. A remainder of less than a vector at the end of a share is not read but counted, because parts
/// are large.
///
/// The result is the faster of software prefetching and the CPU's own prefetchers.
///
/// It is a memory limit only if the parts exceed the last-level cache.
///
/// # Panics
///
/// If `parts` is empty or `threads` is zero.
#[must_use]
pub fn read_bandwidth(parts: &[&[u8]], passes: usize, isa: Isa, threads: usize) -> Limit {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    assert!(bytes > 0, "a probe needs something to read");
    let seconds = [Some(AHEAD), None].map(|ahead| {
        average(passes, threads, |thread| {
            for part in parts {
                let share = part.len().div_ceil(threads).next_multiple_of(LINE).max(LINE);
                if let Some(share) = part.chunks(share).nth(thread) {
                    black_box(isa.run(Read { bytes: share, times: 1, ahead }));
                }
            }
        })
    });
    let seconds = seconds[0].min(seconds[1]);
    Limit::new(Quantity::bytes_per_second(bytes as u64, seconds), isa.name(), threads)
}

/// Bytes per cache line.
pub(super) const LINE: usize = 64;
/// Prefetch distance in bytes.
const AHEAD: usize = 4096;

/// Loads every vector of `bytes` several times and XORs it into a sum.
pub(super) struct Read<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) times: usize,
    /// Prefetch distance, if software prefetching is used.
    pub(super) ahead: Option<usize>,
}

impl Kernel for Read<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        /// Number of independent sums, to avoid a dependency stall.
        const STREAMS: usize = 8;
        let mut sums = [simd.zero(); STREAMS];
        for _ in 0..self.times {
            for block in black_box(self.bytes).chunks_exact(STREAMS * S::BYTES) {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let at = block.as_ptr().wrapping_add(i * S::BYTES);
                    if let Some(ahead) = self.ahead
                        && (i * S::BYTES).is_multiple_of(LINE)
                    {
                        simd.prefetch(at.wrapping_add(ahead));
                    }
                    // SAFETY: a block holds STREAMS whole vectors.
                    *sum = simd.xor(*sum, unsafe { simd.load(at) });
                }
            }
        }
        kept(simd, sums)
    }
}

/// Derives a value from all `sums`, to prevent dead-code elimination. They are stored one by one, so that the compiler
/// keeps plain integers in vectors too.
#[inline(always)]
pub(super) fn kept<S: Simd, const SUMS: usize>(simd: S, sums: [S::Vector; SUMS]) -> u64 {
    let mut bytes = [[0; LINE]; SUMS];
    for (bytes, sum) in bytes.iter_mut().zip(sums) {
        // SAFETY: no vector is longer than a line.
        unsafe { simd.store(bytes.as_mut_ptr(), sum) };
    }
    u64::from(black_box(bytes)[0][0])
}

#[cfg(test)]
mod tests {
    use super::read_bandwidth;
    use crate::simd::Isa;

    #[test]
    fn every_path_reports_rate_and_instructions() {
        let part = vec![1; 1 << 16];
        for isa in Isa::available() {
            for threads in [1, 2, 3] {
                let limit = read_bandwidth(&[&part, &part[..100]], 2, isa, threads);
                assert!(limit.value > 1e6 && limit.value.is_finite(), "{limit:?}");
                assert_eq!(limit.unit.name(), "By/s");
                assert_eq!((limit.instructions, limit.threads), (Some(isa.name()), Some(threads)));
            }
        }
    }
}
