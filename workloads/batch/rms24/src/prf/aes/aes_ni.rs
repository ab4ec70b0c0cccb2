//! AES with AES-NI: one block per instruction, eight in flight.

use std::arch::x86_64::*;

/// Round keys of AES-128, the initial one included.
pub(super) const ROUND_KEYS: usize = 11;
/// Blocks in flight: enough to hide the latency of a round.
const IN_FLIGHT: usize = 8;

/// A cipher under one key. It exists only where the CPU has the instructions.
#[derive(Clone)]
pub(super) struct AesNi {
    keys: [u128; ROUND_KEYS],
}

impl std::fmt::Debug for AesNi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AesNi")
    }
}

impl AesNi {
    pub(super) fn is_available() -> bool {
        is_x86_feature_detected!("aes")
    }

    pub(super) fn new(key: [u8; 16]) -> Option<Self> {
        // SAFETY: the feature was just detected.
        Self::is_available().then(|| Self { keys: unsafe { schedule(key) } })
    }

    pub(super) fn keys(&self) -> &[u128; ROUND_KEYS] {
        &self.keys
    }

    #[inline]
    pub(super) fn fill(&self, low: u64, step: u64, high: u64, outputs: &mut [u128]) {
        // SAFETY: `self` exists only where AES-NI was detected.
        unsafe { fill(&self.keys, low, step, high, outputs) }
    }
}

/// The round keys of a key.
#[target_feature(enable = "aes")]
fn schedule(key: [u8; 16]) -> [u128; ROUND_KEYS] {
    let mut keys = [u128::from_le_bytes(key); ROUND_KEYS];
    macro_rules! rounds {
        ($($round:literal: $constant:literal),*) => {
            $({
                let last = vector(keys[$round - 1]);
                let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$constant>(last));
                // Each word is the sum of all words up to it in the last key, and the new one.
                let mut sum = _mm_xor_si128(last, _mm_slli_si128::<4>(last));
                sum = _mm_xor_si128(sum, _mm_slli_si128::<8>(sum));
                keys[$round] = integer(_mm_xor_si128(sum, word));
            })*
        };
    }
    rounds!(1: 0x01, 2: 0x02, 3: 0x04, 4: 0x08, 5: 0x10, 6: 0x20, 7: 0x40, 8: 0x80, 9: 0x1b, 10: 0x36);
    keys
}

#[target_feature(enable = "aes")]
fn fill(keys: &[u128; ROUND_KEYS], low: u64, step: u64, high: u64, outputs: &mut [u128]) {
    let keys = keys.map(|key| vector(key));
    let input =
        |i: usize| _mm_set_epi64x(high.cast_signed(), low.wrapping_add(step.wrapping_mul(i as u64)).cast_signed());
    let mut done = 0;
    let mut chunks = outputs.chunks_exact_mut(IN_FLIGHT);
    for chunk in &mut chunks {
        let mut blocks: [__m128i; IN_FLIGHT] = std::array::from_fn(|i| _mm_xor_si128(input(done + i), keys[0]));
        for key in &keys[1..ROUND_KEYS - 1] {
            for block in &mut blocks {
                *block = _mm_aesenc_si128(*block, *key);
            }
        }
        for (output, block) in chunk.iter_mut().zip(blocks) {
            *output = integer(_mm_aesenclast_si128(block, keys[ROUND_KEYS - 1]));
        }
        done += IN_FLIGHT;
    }
    for (i, output) in chunks.into_remainder().iter_mut().enumerate() {
        let mut block = _mm_xor_si128(input(done + i), keys[0]);
        for key in &keys[1..ROUND_KEYS - 1] {
            block = _mm_aesenc_si128(block, *key);
        }
        *output = integer(_mm_aesenclast_si128(block, keys[ROUND_KEYS - 1]));
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn vector(block: u128) -> __m128i {
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

#[inline]
#[target_feature(enable = "sse2")]
fn integer(block: __m128i) -> u128 {
    let low = _mm_cvtsi128_si64(block).cast_unsigned();
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(block, block)).cast_unsigned();
    u128::from(high) << 64 | u128::from(low)
}
