//! 16-byte vectors: NEON, which every 64-bit ARM CPU that Linux runs on has.

use std::arch::aarch64::*;

use super::{Kernel, Simd};

/// Proof that the CPU has NEON; only [`Neon::detect`] creates it.
#[derive(Debug, Clone, Copy)]
pub struct Neon(());

impl Neon {
    /// Returns the proof if the CPU has the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` exists only where NEON was detected.
        unsafe { self.with_features(kernel) }
    }

    #[target_feature(enable = "neon")]
    fn with_features<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// Evaluates intrinsics in a method of [`Neon`].
macro_rules! neon {
    ($($body:tt)*) => {{
        // These intrinsics are safe on targets with NEON in the baseline.
        #[allow(unused_unsafe)]
        // SAFETY: the methods that use this take a proof of NEON; the only memory read is a table above.
        unsafe { $($body)* }
    }};
}

/// The bit of each lane within the byte of its half of the vector.
const LANE_BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

impl Simd for Neon {
    const BYTES: usize = 16;
    const REGISTERS: usize = 32;
    type Vector = uint8x16_t;
    type Mask = uint8x16_t;

    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> uint8x16_t {
        // SAFETY: `self` proves NEON; the caller promises 16 readable bytes.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8, vector: uint8x16_t) {
        // SAFETY: `self` proves NEON; the caller promises 16 writable bytes.
        unsafe { vst1q_u8(to, vector) }
    }

    #[inline(always)]
    fn xor(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        neon!(veorq_u8(a, b))
    }

    #[inline(always)]
    fn mask(self, bit: u64) -> uint8x16_t {
        neon!(vdupq_n_u8(((bit & 1) as u8).wrapping_neg()))
    }

    #[inline(always)]
    fn xor_masked(self, a: uint8x16_t, b: uint8x16_t, mask: uint8x16_t) -> uint8x16_t {
        neon!(veorq_u8(a, vandq_u8(b, mask)))
    }

    #[inline(always)]
    fn splat(self, byte: u8) -> uint8x16_t {
        neon!(vdupq_n_u8(byte))
    }

    #[inline(always)]
    fn add(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        neon!(vaddq_u8(a, b))
    }

    #[inline(always)]
    fn times8(self, a: uint8x16_t) -> uint8x16_t {
        neon!(vshlq_n_u8::<3>(a))
    }

    #[inline(always)]
    fn rotate_left_3(self, a: uint8x16_t) -> uint8x16_t {
        neon!(vsriq_n_u8::<5>(vshlq_n_u8::<3>(a), a))
    }

    #[inline(always)]
    fn nonzero(self, a: uint8x16_t) -> u64 {
        neon!({
            let bits = vandq_u8(vtstq_u8(a, a), vld1q_u8(LANE_BITS.as_ptr()));
            u64::from(vaddv_u8(vget_low_u8(bits))) | u64::from(vaddv_u8(vget_high_u8(bits))) << 8
        })
    }
}
