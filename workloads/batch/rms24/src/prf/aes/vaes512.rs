//! AES with VAES: four blocks per instruction, 32 in flight.

use std::arch::x86_64::*;

use assay_harness::aes::ROUND_KEYS;

use super::aes_ni::AesNi;

/// Blocks in a vector.
const LANES: usize = 4;
/// Vectors in flight.
const VECTORS: usize = 8;

/// A cipher under one key. It exists only where the CPU has the instructions.
#[derive(Debug, Clone)]
pub(super) struct Vaes512(AesNi);

impl Vaes512 {
    pub(super) fn is_available() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vaes") && AesNi::is_available()
    }

    pub(super) fn new(key: [u8; 16]) -> Option<Self> {
        if Self::is_available() { AesNi::new(key).map(Self) } else { None }
    }

    #[inline]
    pub(super) fn fill(&self, low: u64, step: u64, high: u64, outputs: &mut [u128]) {
        let wide = outputs.len() - outputs.len() % LANES;
        let (many, rest) = outputs.split_at_mut(wide);
        if !many.is_empty() {
            // SAFETY: `self` exists only where the features were detected.
            unsafe { fill(self.0.keys(), low, step, high, many) };
        }
        if !rest.is_empty() {
            self.0.fill(low.wrapping_add(step.wrapping_mul(wide as u64)), step, high, rest);
        }
    }
}

/// Fills a multiple of four blocks.
#[target_feature(enable = "avx512f,vaes")]
fn fill(keys: &[u128; ROUND_KEYS], low: u64, step: u64, high: u64, outputs: &mut [u128]) {
    let keys: [__m512i; ROUND_KEYS] = keys.map(|key| broadcast(key));
    let at = |i: u64| low.wrapping_add(step.wrapping_mul(i)).cast_signed();
    let high = high.cast_signed();
    let mut input = _mm512_setr_epi64(at(0), high, at(1), high, at(2), high, at(3), high);
    let vector_step = step.wrapping_mul(LANES as u64).cast_signed();
    let next = _mm512_setr_epi64(vector_step, 0, vector_step, 0, vector_step, 0, vector_step, 0);
    let mut take = || {
        let block = _mm512_xor_si512(input, keys[0]);
        input = _mm512_add_epi64(input, next);
        block
    };
    let mut chunks = outputs.chunks_exact_mut(LANES * VECTORS);
    for chunk in &mut chunks {
        let mut blocks: [__m512i; VECTORS] = std::array::from_fn(|_| take());
        for key in &keys[1..ROUND_KEYS - 1] {
            for block in &mut blocks {
                *block = _mm512_aesenc_epi128(*block, *key);
            }
        }
        for (room, block) in chunk.chunks_exact_mut(LANES).zip(blocks) {
            // SAFETY: the room is that of four blocks, 64 bytes.
            unsafe {
                _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_aesenclast_epi128(block, keys[ROUND_KEYS - 1]))
            };
        }
    }
    for room in chunks.into_remainder().chunks_exact_mut(LANES) {
        let mut block = take();
        for key in &keys[1..ROUND_KEYS - 1] {
            block = _mm512_aesenc_epi128(block, *key);
        }
        // SAFETY: the room is that of four blocks, 64 bytes.
        unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_aesenclast_epi128(block, keys[ROUND_KEYS - 1])) };
    }
}

/// The same block in all four lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(block: u128) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x((block >> 64) as i64, block as i64))
}
