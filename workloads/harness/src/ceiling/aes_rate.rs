//! Rate at which threads encrypt AES-128 blocks, with enough blocks in flight to fill the pipeline.

use std::hint::black_box;

use super::limit::Limit;
use super::together::average;
use crate::{Quantity, Unit};

/// Blocks per pass; a few tens of microseconds.
const BLOCKS: usize = 1 << 15;
const PASSES: usize = 64;

/// AES-128 blocks per second of one thread with the widest AES instructions of the CPU, ten rounds each; `None` without
/// such instructions.
#[must_use]
pub fn aes_rate() -> Option<Limit> {
    ["vaes512", "vaes256", "aes-ni"].into_iter().find_map(|instructions| aes_rate_with(instructions, 1))
}

/// AES-128 blocks per second of `threads` threads with the named instructions: `aes-ni` encrypts one block at a time,
/// `vaes256` two and `vaes512` four; `None` if the CPU lacks them.
///
/// # Panics
///
/// If `threads` is zero.
#[must_use]
pub fn aes_rate_with(instructions: &str, threads: usize) -> Option<Limit> {
    let (name, encrypt) = encryptor(instructions)?;
    let seconds = average(PASSES, threads, |_| {
        black_box(encrypt(BLOCKS));
    });
    let rate = Quantity::new((threads * BLOCKS) as f64 / seconds, Unit::new("blocks/s"));
    Some(Limit::new(rate, name, threads))
}

/// Encrypts at least the given number of blocks; the return value depends on the result and prevents dead-code
/// elimination.
type Encrypt = fn(usize) -> u64;

#[cfg(not(target_arch = "x86_64"))]
fn encryptor(_: &str) -> Option<(&'static str, Encrypt)> {
    None
}

#[cfg(target_arch = "x86_64")]
use x86::encryptor;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::Encrypt;

    /// Vectors in flight, enough to hide the latency of a round.
    const IN_FLIGHT: usize = 8;
    /// AES-128 rounds before the last one, which has a separate instruction.
    const ROUNDS: usize = 9;

    /// Returns the named implementation if the CPU supports it.
    pub(super) fn encryptor(instructions: &str) -> Option<(&'static str, Encrypt)> {
        let (there, name, encrypt): (bool, _, Encrypt) = match instructions {
            // SAFETY: the function is returned only where the feature was detected, below.
            "aes-ni" => (is_x86_feature_detected!("aes"), "aes-ni", |blocks| unsafe { one_at_a_time(blocks) }),
            "vaes256" => {
                let there = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2");
                // SAFETY: as above.
                (there, "vaes256", |blocks| unsafe { two_at_a_time(blocks) })
            }
            "vaes512" => {
                let there = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f");
                // SAFETY: as above.
                (there, "vaes512", |blocks| unsafe { four_at_a_time(blocks) })
            }
            _ => return None,
        };
        there.then_some((name, encrypt))
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

    #[target_feature(enable = "vaes,avx2")]
    fn two_at_a_time(blocks: usize) -> u64 {
        let key = black_box(_mm256_set1_epi8(0x5a));
        let mut state = [_mm256_setzero_si256(); IN_FLIGHT];
        for _ in 0..blocks.div_ceil(2 * IN_FLIGHT) {
            for _ in 0..ROUNDS {
                state = state.map(|block| _mm256_aesenc_epi128(block, key));
            }
            state = state.map(|block| _mm256_aesenclast_epi128(block, key));
        }
        let sum = state.into_iter().fold(_mm256_setzero_si256(), |sum, block| _mm256_xor_si256(sum, block));
        _mm256_extract_epi64::<0>(sum).cast_unsigned()
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
    use super::{aes_rate, aes_rate_with};

    #[test]
    fn aes_rate_exists_exactly_if_the_cpu_has_the_instructions() {
        #[cfg(target_arch = "x86_64")]
        {
            let (vaes, wide) = (is_x86_feature_detected!("vaes"), is_x86_feature_detected!("avx512f"));
            let aes = is_x86_feature_detected!("aes");
            let widest = if vaes && wide {
                "vaes512"
            } else if vaes {
                "vaes256"
            } else {
                "aes-ni"
            };
            assert_eq!(aes_rate().and_then(|limit| limit.instructions), aes.then_some(widest));
            for (name, there) in [("aes-ni", aes), ("vaes256", vaes), ("vaes512", vaes && wide), ("portable", false)] {
                assert_eq!(aes_rate_with(name, 2).is_some(), there, "{name}");
            }
        }
        let limits = ["aes-ni", "vaes256", "vaes512"].map(|name| aes_rate_with(name, 1));
        assert_eq!(aes_rate().is_some(), limits.iter().any(Option::is_some));
        assert!(limits.into_iter().flatten().all(|limit| limit.value > 1e5 && limit.threads == Some(1)));
    }
}
