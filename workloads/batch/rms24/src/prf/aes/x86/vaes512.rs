//! Four blocks in a register: VAES with AVX-512.

use std::arch::x86_64::*;

use super::aes_ni::AesNi;
use super::wide::{WIDEST, Wide, Work};
use crate::geometry::Place;

/// Proof that the CPU has VAES and AVX-512 F, BW and VL. It is made by [`Vaes512::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub(in crate::prf::aes) struct Vaes512(());

impl Vaes512 {
    pub(super) fn detect() -> Option<Self> {
        let all = AesNi::detect().is_some()
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        all.then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<T: Work>(self, work: T) -> T::Output {
        // SAFETY: `self` exists only where these features were detected.
        unsafe { self.with_features(work) }
    }

    #[target_feature(enable = "aes,vaes,avx2,popcnt,avx512f,avx512bw,avx512vl")]
    fn with_features<T: Work>(self, work: T) -> T::Output {
        work.run(self)
    }
}

/// Evaluates intrinsics in a method of [`Vaes512`].
macro_rules! vaes512 {
    ($($body:tt)*) => {
        // SAFETY: the methods that use this take a proof that VAES and AVX-512 are there, and touch no memory.
        unsafe { $($body)* }
    };
}

impl Wide for Vaes512 {
    const BLOCKS: usize = 4;
    type Vector = __m512i;

    #[inline(always)]
    fn load(self, blocks: &[u128; WIDEST]) -> __m512i {
        // SAFETY: `self` proves AVX-512; there are 64 readable bytes.
        unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn at_places(self, places: &[Place], low: u64, high: u64) -> __m512i {
        assert_eq!(places.len(), Self::BLOCKS);
        // SAFETY: `self` proves AVX-512; four places are 32 readable bytes, of each first its block, then its offset.
        unsafe {
            let places = _mm256_slli_epi64::<32>(_mm256_loadu_si256(places.as_ptr().cast()));
            let low = _mm256_or_si256(places, _mm256_set1_epi64x(low.cast_signed()));
            let twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
            let high = _mm512_set1_epi64(high.cast_signed());
            _mm512_mask_permutexvar_epi64(high, 0b0101_0101, twice, _mm512_castsi256_si512(low))
        }
    }

    #[inline(always)]
    fn store(self, vector: __m512i, to: &mut [u128]) {
        assert_eq!(to.len(), Self::BLOCKS);
        // SAFETY: `self` proves AVX-512; there is room for four blocks, 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn round(self, vector: __m512i, key: __m512i) -> __m512i {
        vaes512!(_mm512_aesenc_epi128(vector, key))
    }

    #[inline(always)]
    fn last_round(self, vector: __m512i, key: __m512i) -> __m512i {
        vaes512!(_mm512_aesenclast_epi128(vector, key))
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        vaes512!(_mm512_xor_si512(a, b))
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        vaes512!(_mm512_and_si512(a, b))
    }

    #[inline(always)]
    fn add64(self, a: __m512i, b: __m512i) -> __m512i {
        vaes512!(_mm512_add_epi64(a, b))
    }

    #[inline(always)]
    fn sub32(self, a: __m512i, b: __m512i) -> __m512i {
        vaes512!(_mm512_sub_epi32(a, b))
    }

    #[inline(always)]
    fn min32(self, a: __m512i, b: __m512i) -> __m512i {
        vaes512!(_mm512_min_epu32(a, b))
    }

    #[inline(always)]
    fn min16(self, a: __m512i, b: __m512i) -> __m512i {
        vaes512!(_mm512_min_epu16(a, b))
    }

    #[inline(always)]
    fn below32(self, a: __m512i, b: __m512i) -> u32 {
        vaes512!(u32::from(_mm512_cmplt_epu32_mask(a, b)))
    }

    #[inline(always)]
    fn any_zero16(self, a: __m512i) -> bool {
        vaes512!(_mm512_testn_epi16_mask(a, a) != 0)
    }
}
