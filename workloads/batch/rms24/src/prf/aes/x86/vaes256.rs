//! Two blocks in a register: VAES with AVX2. CPUs that have it and no AVX-512 are e.g. Zen 3 and Alder Lake.

use std::arch::x86_64::*;

use super::aes_ni::AesNi;
use super::wide::{WIDEST, Wide, Work, instructions};
use crate::geometry::Place;

/// Proof that the CPU has VAES and AVX2. It is made by [`Vaes256::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub(in crate::prf::aes) struct Vaes256(());

impl Vaes256 {
    pub(super) fn detect() -> Option<Self> {
        (AesNi::detect().is_some() && is_x86_feature_detected!("vaes")).then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<T: Work>(self, work: T) -> T::Output {
        // SAFETY: `self` exists only where these features were detected.
        unsafe { self.with_features(work) }
    }

    #[target_feature(enable = "aes,vaes,avx2,popcnt")]
    fn with_features<T: Work>(self, work: T) -> T::Output {
        work.run(self)
    }
}

impl Wide for Vaes256 {
    const BLOCKS: usize = 2;
    type Vector = __m256i;

    #[inline(always)]
    fn load(self, blocks: &[u128; WIDEST]) -> __m256i {
        // SAFETY: `self` proves AVX2; there are 64 readable bytes.
        unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn at_places(self, places: &[Place], low: u64, high: u64) -> __m256i {
        assert_eq!(places.len(), Self::BLOCKS);
        // SAFETY: `self` proves AVX2; two places are 16 readable bytes, of each first its block, then its offset.
        unsafe {
            let places = _mm_slli_epi64::<32>(_mm_loadu_si128(places.as_ptr().cast()));
            let low = _mm_or_si128(places, _mm_set1_epi64x(low.cast_signed()));
            let twice = _mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(low));
            _mm256_blend_epi32::<0b1100_1100>(twice, _mm256_set1_epi64x(high.cast_signed()))
        }
    }

    #[inline(always)]
    fn store(self, vector: __m256i, to: &mut [u128]) {
        assert_eq!(to.len(), Self::BLOCKS);
        // SAFETY: `self` proves AVX2; there is room for two blocks, 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
    }

    instructions! {
        __m256i:
        round = _mm256_aesenc_epi128,
        last_round = _mm256_aesenclast_epi128,
        xor = _mm256_xor_si256,
        and = _mm256_and_si256,
        add64 = _mm256_add_epi64,
        sub32 = _mm256_sub_epi32,
        min32 = _mm256_min_epu32,
        min16 = _mm256_min_epu16,
    }

    #[inline(always)]
    fn below32(self, a: __m256i, b: __m256i) -> u32 {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe {
            let not_below = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
            _mm256_movemask_ps(_mm256_castsi256_ps(not_below)).cast_unsigned() ^ 0xff
        }
    }

    #[inline(always)]
    fn any_zero16(self, a: __m256i) -> bool {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi16(a, _mm256_setzero_si256())) != 0 }
    }
}
