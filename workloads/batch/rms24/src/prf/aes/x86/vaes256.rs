//! Two blocks in a register: VAES with AVX2. CPUs that have it and no AVX-512 are e.g. Zen 3 and Alder Lake.

use std::arch::asm;
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

    #[target_feature(enable = "avx")]
    #[inline]
    fn in_order(mut vector: __m256i) -> __m256i {
        // SAFETY: there is no instruction in it.
        unsafe { asm!("/* {} */", inout(ymm_reg) vector, options(nomem, nostack, preserves_flags)) };
        vector
    }

    #[target_feature(enable = "aes,vaes,avx2,popcnt")]
    fn with_features<T: Work>(self, work: T) -> T::Output {
        work.run(self)
    }
}

impl Wide for Vaes256 {
    const BLOCKS: usize = 2;
    type Vector = __m256i;
    type Near32 = __m256i;
    type Near16 = __m256i;

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

    /// Without it, round keys are kept in registers and blocks, of which there are too many then, encrypted one after the other.
    #[inline(always)]
    fn in_order(self, vector: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { Self::in_order(vector) }
    }

    #[inline(always)]
    fn lanes32(self, two: [__m256i; 2], lane: u32) -> __m256i {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe {
            let lanes = _mm256_add_epi32(_mm256_setr_epi64x(0, 4, 0, 4), _mm256_set1_epi64x(i64::from(lane)));
            let [first, second] = two.map(|vector| _mm256_permutevar8x32_epi32(vector, lanes));
            _mm256_permute2x128_si256::<0x20>(first, second)
        }
    }

    #[inline(always)]
    fn put_offsets(self, vector: __m256i, places: &mut [Place]) {
        assert_eq!(places.len(), 2 * Self::BLOCKS);
        // SAFETY: `self` proves AVX2; four places are 32 bytes, of each first its block, then its offset.
        unsafe {
            let places = places.as_mut_ptr().cast();
            let blocks = _mm256_loadu_si256(places);
            _mm256_storeu_si256(places, _mm256_blend_epi32::<0b1010_1010>(blocks, vector));
        }
    }

    instructions! {
        __m256i:
        round = _mm256_aesenc_epi128,
        last_round = _mm256_aesenclast_epi128,
        xor = _mm256_xor_si256,
        and = _mm256_and_si256,
        add64 = _mm256_add_epi64,
        shl32 = _mm256_sllv_epi32,
        mul32 = _mm256_mul_epu32,
        sub32 = _mm256_sub_epi32,
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
    fn equal16(self, a: __m256i, b: __m256i) -> u32 {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe {
            // Bytes of each half of the register, in the order of lanes, then those of both halves.
            let bytes = _mm256_packs_epi16(_mm256_cmpeq_epi16(a, b), _mm256_setzero_si256());
            _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(bytes)).cast_unsigned()
        }
    }

    /// The least of every lane.
    #[inline(always)]
    fn none_near32(self) -> __m256i {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe { _mm256_set1_epi32(-1) }
    }

    #[inline(always)]
    fn look32(self, least: __m256i, a: __m256i, _: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe { _mm256_min_epu32(least, a) }
    }

    #[inline(always)]
    fn any_near32(self, least: __m256i, reach: __m256i) -> bool {
        self.below32(reach, least) != 0xff
    }

    /// Where a lane was near, all its bits.
    #[inline(always)]
    fn none_near16(self) -> __m256i {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn look16(self, near: __m256i, a: __m256i, bits: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe { _mm256_or_si256(near, _mm256_cmpeq_epi16(a, bits)) }
    }

    #[inline(always)]
    fn any_near16(self, near: __m256i) -> bool {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe { _mm256_movemask_epi8(near) != 0 }
    }
}
