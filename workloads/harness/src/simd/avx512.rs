//! 64-byte vectors: AVX-512 with the F, BW, DQ and VL extensions.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Proof that the CPU has AVX-512 F, BW, DQ and VL; only [`Avx512::detect`] creates it.
#[derive(Debug, Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// Returns the proof if the CPU has the instructions and the system saves their registers.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        all.then_some(Self(()))
    }

    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` exists only where these features were detected.
        unsafe { self.with_features(kernel) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn with_features<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// Evaluates intrinsics in a method of [`Avx512`].
macro_rules! avx512 {
    ($($body:tt)*) => {
        // SAFETY: the methods that use this take a proof of AVX-512 and access no memory.
        unsafe { $($body)* }
    };
}

/// `a ^ b ^ c` as a truth table.
const XOR3: i32 = 0x96;
/// `a & b | !a & c` as a truth table: bits of `b` where `a` is set, else of `c`.
const SELECT: i32 = 0xca;

impl Simd for Avx512 {
    const BYTES: usize = 64;
    const REGISTERS: usize = 32;
    type Vector = __m512i;
    type Mask = __mmask8;

    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> __m512i {
        // SAFETY: `self` proves AVX-512; the caller promises 64 readable bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8, vector: __m512i) {
        // SAFETY: `self` proves AVX-512; the caller promises 64 writable bytes.
        unsafe { _mm512_storeu_si512(to.cast(), vector) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        avx512!(_mm512_xor_si512(a, b))
    }

    #[inline(always)]
    fn xor3(self, a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        avx512!(_mm512_ternarylogic_epi64::<XOR3>(a, b, c))
    }

    #[inline(always)]
    fn mask(self, bit: u64) -> __mmask8 {
        ((bit & 1) as u8).wrapping_neg()
    }

    #[inline(always)]
    fn xor_masked(self, a: __m512i, b: __m512i, mask: __mmask8) -> __m512i {
        avx512!(_mm512_mask_xor_epi64(a, mask, a, b))
    }

    #[inline(always)]
    fn splat(self, byte: u8) -> __m512i {
        avx512!(_mm512_set1_epi8(byte.cast_signed()))
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        avx512!(_mm512_add_epi8(a, b))
    }

    #[inline(always)]
    fn times8(self, a: __m512i) -> __m512i {
        avx512!(_mm512_and_si512(_mm512_slli_epi16::<3>(a), _mm512_set1_epi8(0xf8_u8.cast_signed())))
    }

    #[inline(always)]
    fn rotate_left_3(self, a: __m512i) -> __m512i {
        avx512!({
            let low = _mm512_set1_epi8(0x07);
            _mm512_ternarylogic_epi64::<SELECT>(low, _mm512_srli_epi16::<5>(a), _mm512_slli_epi16::<3>(a))
        })
    }

    #[inline(always)]
    fn nonzero(self, a: __m512i) -> u64 {
        avx512!(_mm512_test_epi8_mask(a, a))
    }
}
