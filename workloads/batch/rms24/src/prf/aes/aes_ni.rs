//! AES with AES-NI: one block per instruction, eight in flight.

use std::arch::x86_64::*;

use assay_harness::aes::{self, ROUND_KEYS, integer, vector};

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
        aes::AesNi::detect().is_some()
    }

    pub(super) fn new(key: [u8; 16]) -> Option<Self> {
        aes::AesNi::detect().map(|aes| Self { keys: aes.round_keys(key) })
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

#[target_feature(enable = "aes")]
fn fill(keys: &[u128; ROUND_KEYS], low: u64, step: u64, high: u64, outputs: &mut [u128]) {
    let keys = keys.map(vector);
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
