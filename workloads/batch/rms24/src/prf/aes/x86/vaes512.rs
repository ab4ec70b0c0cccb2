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
    type Near32 = __mmask16;
    type Near16 = __mmask32;

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
            let places = _mm512_castsi256_si512(_mm256_loadu_si256(places.as_ptr().cast()));
            // Of every block the second quarter is a number from the places, and the others are the same in all.
            let blocks = _mm512_setr_epi32(0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0);
            let around = _mm512_broadcast_i32x4(_mm_set_epi64x(high.cast_signed(), low.cast_signed()));
            _mm512_mask_permutexvar_epi32(around, 0x2222, blocks, places)
        }
    }

    #[inline(always)]
    fn store(self, vector: __m512i, to: &mut [u128]) {
        assert_eq!(to.len(), Self::BLOCKS);
        // SAFETY: `self` proves AVX-512; there is room for four blocks, 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn lanes32(self, [first, second]: [__m512i; 2], lane: u32) -> __m512i {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe {
            // From 16 on they are those of the second register.
            let blocks = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
            let lanes = _mm512_add_epi32(blocks, _mm512_set1_epi64(i64::from(lane)));
            _mm512_permutex2var_epi32(first, lanes, second)
        }
    }

    #[inline(always)]
    fn put_offsets(self, vector: __m512i, places: &mut [Place]) {
        assert_eq!(places.len(), 2 * Self::BLOCKS);
        // SAFETY: `self` proves AVX-512; eight places are 64 bytes, of each first its block, then its offset, which alone is written.
        unsafe { _mm512_mask_storeu_epi32(places.as_mut_ptr().cast(), 0xaaaa, vector) }
    }

    instructions! {
        __m512i:
        round = _mm512_aesenc_epi128,
        last_round = _mm512_aesenclast_epi128,
        xor = _mm512_xor_si512,
        and = _mm512_and_si512,
        add64 = _mm512_add_epi64,
        shl32 = _mm512_sllv_epi32,
        mul32 = _mm512_mul_epu32,
        sub32 = _mm512_sub_epi32,
    }

    #[inline(always)]
    fn below32(self, a: __m512i, b: __m512i) -> u32 {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe { u32::from(_mm512_cmplt_epu32_mask(a, b)) }
    }

    #[inline(always)]
    fn equal16(self, a: __m512i, b: __m512i) -> u32 {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe { _mm512_cmpeq_epi16_mask(a, b) }
    }

    /// The lanes that were never near: the unit that encrypts is not the one that compares.
    #[inline(always)]
    fn none_near32(self) -> __mmask16 {
        __mmask16::MAX
    }

    #[inline(always)]
    fn look32(self, far: __mmask16, a: __m512i, reach: __m512i) -> __mmask16 {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe { _mm512_mask_cmpgt_epu32_mask(far, a, reach) }
    }

    #[inline(always)]
    fn any_near32(self, far: __mmask16, _: __m512i) -> bool {
        far != __mmask16::MAX
    }

    #[inline(always)]
    fn none_near16(self) -> __mmask32 {
        __mmask32::MAX
    }

    #[inline(always)]
    fn look16(self, far: __mmask32, a: __m512i, bits: __m512i) -> __mmask32 {
        // SAFETY: `self` proves AVX-512, and no memory is touched.
        unsafe { _mm512_mask_cmpneq_epi16_mask(far, a, bits) }
    }

    #[inline(always)]
    fn any_near16(self, far: __mmask32) -> bool {
        far != __mmask32::MAX
    }
}
