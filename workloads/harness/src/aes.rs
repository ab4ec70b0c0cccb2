//! AES-128 with the CPU's instructions: feature detection, key expansion, and conversion of blocks to registers.
//! Kernels choose the number of blocks in flight themselves.
//!
//! A block is a `u128` whose lowest byte is the block's first.

use std::arch::x86_64::*;

/// Number of AES-128 round keys, including the initial one.
pub const ROUND_KEYS: usize = 11;

/// Proof that the CPU has AES-NI; only [`AesNi::detect`] creates it.
#[derive(Debug, Clone, Copy)]
pub struct AesNi(());

impl AesNi {
    /// Returns the proof if the CPU has the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("aes").then_some(Self(()))
    }

    /// Expands `key` to its round keys (FIPS 197, section 5.2).
    #[must_use]
    pub fn round_keys(self, key: [u8; 16]) -> [u128; ROUND_KEYS] {
        // SAFETY: `self` exists only where AES-NI was detected.
        unsafe { round_keys(key) }
    }
}

#[target_feature(enable = "aes")]
fn round_keys(key: [u8; 16]) -> [u128; ROUND_KEYS] {
    let mut keys = [u128::from_le_bytes(key); ROUND_KEYS];
    macro_rules! rounds {
        ($($round:literal: $constant:literal),*) => {
            $({
                let last = vector(keys[$round - 1]);
                let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$constant>(last));
                // Each word is the XOR of all preceding words of the last key and the new word.
                let mut sum = _mm_xor_si128(last, _mm_slli_si128::<4>(last));
                sum = _mm_xor_si128(sum, _mm_slli_si128::<8>(sum));
                keys[$round] = integer(_mm_xor_si128(sum, word));
            })*
        };
    }
    rounds!(1: 0x01, 2: 0x02, 3: 0x04, 4: 0x08, 5: 0x10, 6: 0x20, 7: 0x40, 8: 0x80, 9: 0x1b, 10: 0x36);
    keys
}

/// Converts a block to a register.
#[inline(always)]
#[must_use]
pub fn vector(block: u128) -> __m128i {
    // SAFETY: both are 128 bits of which every pattern is valid, with the lowest byte first.
    unsafe { std::mem::transmute(block) }
}

/// Converts a register to a block.
#[inline(always)]
#[must_use]
pub fn integer(block: __m128i) -> u128 {
    // SAFETY: as above.
    unsafe { std::mem::transmute(block) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix A.1: the key expansion of 2b7e1516 28aed2a6 abf71588 09cf4f3c begins with the key and ends
    /// with this.
    #[test]
    fn round_keys_match_fips_197() {
        let Some(aes) = AesNi::detect() else { return };
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let keys = aes.round_keys(key);
        assert_eq!(keys[0].to_le_bytes(), key);
        assert_eq!(keys[10].to_le_bytes(), 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6_u128.to_be_bytes());
    }

    #[test]
    fn block_round_trips_through_a_register() {
        let block = 0x0123_4567_89ab_cdef_1032_5476_98ba_dcfe_u128;
        let mut bytes = [0; 16];
        assert_eq!(integer(vector(block)), block);
        // SAFETY: there is room for 16 bytes.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector(block)) };
        assert_eq!(bytes, block.to_le_bytes());
    }
}
