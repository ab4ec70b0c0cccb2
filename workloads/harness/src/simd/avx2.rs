//! 32-byte vectors: AVX2.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Proof that the CPU has AVX2; only [`Avx2::detect`] creates it.
#[derive(Debug, Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// Returns the proof if the CPU has the instructions and the system saves their registers.
    #[must_use]
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { self.with_features(kernel) }
    }

    #[target_feature(enable = "avx2")]
    fn with_features<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// Evaluates intrinsics in a method of [`Avx2`].
macro_rules! avx2 {
    ($($body:tt)*) => {
        // SAFETY: the methods that use this take a proof of AVX2 and access no memory.
        unsafe { $($body)* }
    };
}

impl Simd for Avx2 {
    const BYTES: usize = 32;
    const REGISTERS: usize = 16;
    type Vector = __m256i;
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> __m256i {
        // SAFETY: `self` proves AVX2; the caller promises 32 readable bytes.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8, vector: __m256i) {
        // SAFETY: `self` proves AVX2; the caller promises 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.cast(), vector) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(_mm256_xor_si256(a, b))
    }

    #[inline(always)]
    fn mask(self, bit: u64) -> __m256i {
        avx2!(_mm256_set1_epi64x((bit & 1).wrapping_neg().cast_signed()))
    }

    #[inline(always)]
    fn xor_masked(self, a: __m256i, b: __m256i, mask: __m256i) -> __m256i {
        avx2!(_mm256_xor_si256(a, _mm256_and_si256(b, mask)))
    }

    #[inline(always)]
    fn splat(self, byte: u8) -> __m256i {
        avx2!(_mm256_set1_epi8(byte.cast_signed()))
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(_mm256_add_epi8(a, b))
    }

    #[inline(always)]
    fn times8(self, a: __m256i) -> __m256i {
        avx2!(_mm256_and_si256(_mm256_slli_epi16::<3>(a), _mm256_set1_epi8(0xf8_u8.cast_signed())))
    }

    #[inline(always)]
    fn rotate_left_3(self, a: __m256i) -> __m256i {
        avx2!({
            let low = _mm256_and_si256(_mm256_srli_epi16::<5>(a), _mm256_set1_epi8(0x07));
            _mm256_or_si256(self.times8(a), low)
        })
    }

    #[inline(always)]
    fn nonzero(self, a: __m256i) -> u64 {
        let zero = avx2!(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, _mm256_setzero_si256())));
        u64::from(!zero.cast_unsigned())
    }
}
