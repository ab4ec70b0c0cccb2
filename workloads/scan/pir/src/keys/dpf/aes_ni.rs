//! The generator with AES-NI: one block per instruction, eight in flight.

use std::arch::x86_64::*;
use std::sync::LazyLock;

use super::{CONTROL, Correction, FIXED_KEYS};

/// Round keys of AES-128, the initial one included.
pub(super) const ROUND_KEYS: usize = 11;
/// Nodes in flight; each gives two blocks.
const NODES: usize = 4;

/// Proof that the CPU has AES-NI. It is made by [`AesNi::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub struct AesNi(());

impl AesNi {
    /// The proof, where the CPU has the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("aes").then_some(Self(()))
    }

    /// Writes the corrected children of `nodes`, whose number is a multiple of four.
    pub(super) fn grow(self, nodes: &[u128], correction: Correction, children: &mut [u128]) {
        // SAFETY: `self` exists only where AES-NI was detected.
        unsafe { grow(&self.round_keys(), nodes, correction, children) }
    }

    /// The round keys of both fixed keys.
    pub(super) fn round_keys(self) -> [[u128; ROUND_KEYS]; 2] {
        // SAFETY: as above; a proof had to be there to get here.
        static KEYS: LazyLock<[[u128; ROUND_KEYS]; 2]> =
            LazyLock::new(|| FIXED_KEYS.map(|key| unsafe { schedule(key) }));
        *KEYS
    }
}

/// The round keys of one key.
#[target_feature(enable = "aes")]
fn schedule(key: [u8; 16]) -> [u128; ROUND_KEYS] {
    let mut keys = [u128::from_le_bytes(key); ROUND_KEYS];
    macro_rules! rounds {
        ($($round:literal: $constant:literal),*) => {
            $({
                let last = vector(keys[$round - 1]);
                let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$constant>(last));
                // Each word is the XOR of all words before it in the last key, and the new one.
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
fn grow(keys: &[[u128; ROUND_KEYS]; 2], nodes: &[u128], correction: Correction, children: &mut [u128]) {
    for (nodes, children) in nodes.chunks_exact(NODES).zip(children.chunks_exact_mut(2 * NODES)) {
        let nodes: [u128; NODES] = std::array::from_fn(|i| nodes[i]);
        let seeds = nodes.map(|node| vector(node & !CONTROL));
        let mut blocks: [[__m128i; 2]; NODES] =
            std::array::from_fn(|i| std::array::from_fn(|side| _mm_xor_si128(seeds[i], vector(keys[side][0]))));
        for round in 1..ROUND_KEYS - 1 {
            for node in &mut blocks {
                for (block, keys) in node.iter_mut().zip(keys) {
                    *block = _mm_aesenc_si128(*block, vector(keys[round]));
                }
            }
        }
        for i in 0..NODES {
            let corrected = (nodes[i] & CONTROL).wrapping_neg();
            for side in 0..2 {
                let block = _mm_aesenclast_si128(blocks[i][side], vector(keys[side][ROUND_KEYS - 1]));
                let fix = vector(correction[side] & corrected);
                children[2 * i + side] = integer(_mm_xor_si128(_mm_xor_si128(block, seeds[i]), fix));
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix A.1: the key expansion of 2b7e1516 28aed2a6 abf71588 09cf4f3c ends with this round key.
    #[test]
    fn the_key_schedule_is_that_of_the_standard() {
        if AesNi::detect().is_none() {
            return;
        }
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        // SAFETY: the feature was just detected.
        let keys = unsafe { schedule(key) };
        assert_eq!(keys[10].to_le_bytes(), 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6_u128.to_be_bytes());
    }
}
