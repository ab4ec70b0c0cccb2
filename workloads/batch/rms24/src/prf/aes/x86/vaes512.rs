//! Four blocks in a register: VAES with AVX-512.

use std::arch::x86_64::*;

use super::aes_ni::AesNi;
use super::wide::{WIDEST, Wide, Work, instructions};
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

    instructions! {
        __m512i:
        round = _mm512_aesenc_epi128,
        last_round = _mm512_aesenclast_epi128,
        xor = _mm512_xor_si512,
        and = _mm512_and_si512,
        add64 = _mm512_add_epi64,
        sub32 = _mm512_sub_epi32,
        min32 = _mm512_min_epu32,
        min16 = _mm512_min_epu16,
    }

    #[inline(always)]
    fn below32(self, a: __m512i, b: __m512i) -> u32 {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe { u32::from(_mm512_cmplt_epu32_mask(a, b)) }
    }

    #[inline(always)]
    fn any_zero16(self, a: __m512i) -> bool {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe { _mm512_testn_epi16_mask(a, a) != 0 }
    }
}
