//! How many AES-128 blocks one thread can encrypt per second, with the widest AES instructions the CPU has.

use crate::{Quantity, Stopwatch, Unit};

/// AES-128 blocks per second, ten rounds each, enough of them in flight to fill the pipeline. `None` without AES instructions.
#[must_use]
pub fn aes_rate() -> Option<Quantity> {
    /// Measured at once; a few tens of microseconds.
    const BLOCKS: usize = 1 << 15;
    const PASSES: usize = 8;
    let encrypt = x86::encryptor()?;
    let best = (0..PASSES)
        .map(|_| {
            let watch = Stopwatch::start();
            std::hint::black_box(encrypt(BLOCKS));
            watch.seconds()
        })
        .fold(f64::INFINITY, f64::min);
    Some(Quantity::new(BLOCKS as f64 / best, Unit::new("blocks/s")))
}

#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    pub(super) fn encryptor() -> Option<fn(usize) -> u64> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    /// Vectors in flight: enough to hide the latency of a round.
    const IN_FLIGHT: usize = 8;
    /// Rounds of AES-128 before the last, which has an instruction of its own.
    const ROUNDS: usize = 9;

    /// Encrypts at least that many blocks, and says something about the outcome so that it cannot be left out.
    pub(super) fn encryptor() -> Option<fn(usize) -> u64> {
        let wide = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f");
        if wide {
            // SAFETY: both features were just detected.
            return Some(|blocks| unsafe { four_at_a_time(blocks) });
        }
        // SAFETY: the feature was just detected.
        is_x86_feature_detected!("aes").then_some(|blocks| unsafe { one_at_a_time(blocks) })
    }

    #[target_feature(enable = "aes")]
    fn one_at_a_time(blocks: usize) -> u64 {
        let key = black_box(_mm_set1_epi8(0x5a));
        let mut state = [_mm_setzero_si128(); IN_FLIGHT];
        for _ in 0..blocks.div_ceil(IN_FLIGHT) {
            for _ in 0..ROUNDS {
                state = state.map(|block| _mm_aesenc_si128(block, key));
            }
            state = state.map(|block| _mm_aesenclast_si128(block, key));
        }
        let sum = state.into_iter().fold(_mm_setzero_si128(), |sum, block| _mm_xor_si128(sum, block));
        _mm_cvtsi128_si64(sum).cast_unsigned()
    }

    #[target_feature(enable = "vaes,avx512f")]
    fn four_at_a_time(blocks: usize) -> u64 {
        let key = black_box(_mm512_set1_epi8(0x5a));
        let mut state = [_mm512_setzero_si512(); IN_FLIGHT];
        for _ in 0..blocks.div_ceil(4 * IN_FLIGHT) {
            for _ in 0..ROUNDS {
                state = state.map(|block| _mm512_aesenc_epi128(block, key));
            }
            state = state.map(|block| _mm512_aesenclast_epi128(block, key));
        }
        let sum = state.into_iter().fold(_mm512_setzero_si512(), |sum, block| _mm512_xor_si512(sum, block));
        _mm512_reduce_or_epi64(sum).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::aes_rate;

    #[test]
    fn a_rate_is_there_exactly_where_the_cpu_has_the_instructions() {
        #[cfg(target_arch = "x86_64")]
        assert_eq!(aes_rate().is_some(), is_x86_feature_detected!("aes"));
        assert!(aes_rate().is_none_or(|rate| rate.value > 1e5));
    }
}
