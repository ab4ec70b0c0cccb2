//! Rate of masked XORs in registers, the limit of kernels that select by masking, independent of memory.

use std::hint::black_box;

use super::limit::Limit;
use super::read_bandwidth::kept;
use super::together::average;
use crate::Quantity;
use crate::simd::{Isa, Kernel, Simd};

/// Rounds per pass; some tenths of a millisecond.
const ROUNDS: usize = 1 << 15;
const PASSES: usize = 32;

/// Bytes per second that `threads` threads mask and XOR in whole vectors.
///
/// # Panics
///
/// If `threads` is zero.
#[must_use]
pub fn masked_xors(isa: Isa, threads: usize) -> Limit {
    let bytes = isa.run(Bytes);
    let seconds = average(PASSES, threads, |_| {
        black_box(match isa {
            // The portable path of a scan relies on auto-vectorization of loops over bytes, which does not happen for a
            // loop in registers. SAFETY: SSE2 is part of the architecture.
            #[cfg(target_arch = "x86_64")]
            // SAFETY: SSE2 is part of the architecture.
            Isa::Portable(_) => unsafe { add_in_baseline() },
            _ => isa.run(MaskedXors),
        });
    });
    Limit::new(Quantity::bytes_per_second((threads * ROUNDS * bytes) as u64, seconds), isa.name(), threads)
}

/// Number of accumulators: as many as there are registers, less two for masks.
const fn streams<S: Simd>() -> usize {
    if S::REGISTERS < 16 { 6 } else { 12 }
}

/// Bytes masked and XORed per round.
struct Bytes;

impl Kernel for Bytes {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        streams::<S>() * S::BYTES
    }
}

struct MaskedXors;

impl Kernel for MaskedXors {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        match streams::<S>() {
            6 => add::<S, 6>(simd),
            _ => add::<S, 12>(simd),
        }
    }
}

/// Adds to every sum the next one, which changed in the previous round. This prevents constant folding and does not add
/// a dependency stall.
#[inline(always)]
fn add<S: Simd, const STREAMS: usize>(simd: S) -> u64 {
    let masks = [black_box(1), black_box(3)].map(|bit| simd.mask(bit));
    let mut sums: [S::Vector; STREAMS] = std::array::from_fn(|i| simd.splat(black_box(i as u8)));
    for _ in 0..ROUNDS {
        for i in 0..STREAMS {
            sums[i] = simd.xor_masked(sums[i], sums[(i + 1) % STREAMS], masks[i % 2]);
        }
    }
    kept(simd, sums)
}

/// The same number of bytes per round with the baseline vectors of x86-64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
fn add_in_baseline() -> u64 {
    use std::arch::x86_64::{__m128i, _mm_and_si128, _mm_cvtsi128_si64, _mm_set1_epi8, _mm_set1_epi64x, _mm_xor_si128};
    const STREAMS: usize = 12;
    let masks = [black_box(-1), black_box(-2)].map(|mask| _mm_set1_epi64x(mask));
    let mut sums: [__m128i; STREAMS] = std::array::from_fn(|i| _mm_set1_epi8(black_box(i as i8)));
    for _ in 0..ROUNDS {
        for i in 0..STREAMS {
            sums[i] = _mm_xor_si128(sums[i], _mm_and_si128(sums[(i + 1) % STREAMS], masks[i % 2]));
        }
    }
    _mm_cvtsi128_si64(sums.into_iter().reduce(|a, b| _mm_xor_si128(a, b)).expect("there are sums")).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::masked_xors;
    use crate::simd::Isa;

    #[test]
    fn every_path_reports_rate_and_instructions() {
        for isa in Isa::available() {
            let limit = masked_xors(isa, 2);
            assert!(limit.value > 1e7 && limit.value.is_finite(), "{limit:?}");
            assert_eq!((limit.unit.name(), limit.instructions, limit.threads), ("By/s", Some(isa.name()), Some(2)));
        }
    }
}
