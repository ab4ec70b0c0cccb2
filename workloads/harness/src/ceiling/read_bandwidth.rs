//! How fast one thread can read memory: the widest loads, one XOR each, and nothing else.

use std::hint::black_box;

use crate::simd::{Isa, Kernel, Path, Simd};
use crate::{Quantity, Stopwatch};

/// Reads all of `parts` `passes` times and reports the fastest pass. Less than a whole vector at the end of a part is left out of
/// the reading, but not of the count: parts are large.
///
/// The limit is the memory's only if the parts are larger than the last-level cache.
///
/// # Panics
///
/// When there is nothing to read.
#[must_use]
pub fn read_bandwidth(parts: &[&[u8]], passes: usize) -> Quantity {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    assert!(bytes > 0 && passes > 0, "a probe needs something to read");
    let isa = Isa::select(Path::Auto).expect("there is always a widest path");
    let best = (0..passes)
        .map(|_| {
            let watch = Stopwatch::start();
            for &part in parts {
                black_box(isa.run(ReadXor(part)));
            }
            watch.seconds()
        })
        .fold(f64::INFINITY, f64::min);
    Quantity::bytes_per_second(bytes as u64, best)
}

struct ReadXor<'a>(&'a [u8]);

impl Kernel for ReadXor<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        /// Independent sums, so that no addition waits for the last.
        const STREAMS: usize = 8;
        /// How far ahead of the reading the next lines are asked for.
        const AHEAD: usize = 4096;
        let mut sums = [simd.zero(); STREAMS];
        for block in self.0.chunks_exact(STREAMS * S::BYTES) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let at = block.as_ptr().wrapping_add(i * S::BYTES);
                simd.prefetch(at.wrapping_add(AHEAD));
                // SAFETY: a block holds STREAMS whole vectors.
                *sum = simd.xor(*sum, unsafe { simd.load(at) });
            }
        }
        let sum = sums.into_iter().reduce(|a, b| simd.xor(a, b)).unwrap_or(simd.zero());
        simd.nonzero(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::read_bandwidth;

    #[test]
    fn it_reads_at_some_speed() {
        let part = vec![1; 1 << 16];
        let limit = read_bandwidth(&[&part, &part], 2);
        assert!(limit.value > 1e6 && limit.value.is_finite(), "{limit:?}");
        assert_eq!(limit.unit.name(), "By/s");
    }
}
