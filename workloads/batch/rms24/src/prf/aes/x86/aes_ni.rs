//! One block in a register: AES-NI, with AVX2 for everything around it.

use std::arch::x86_64::*;

use assay_harness::aes::{self, vector};

use super::wide::{WIDEST, Wide, Work, instructions};
use crate::geometry::Place;

/// Proof that the CPU has AES-NI and AVX2. It is made by [`AesNi::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub(in crate::prf::aes) struct AesNi(());

impl AesNi {
    pub(super) fn detect() -> Option<Self> {
        let all =
            aes::AesNi::detect().is_some() && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
        all.then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<T: Work>(self, work: T) -> T::Output {
        // SAFETY: `self` exists only where these features were detected.
        unsafe { self.with_features(work) }
    }

    #[target_feature(enable = "aes,avx2,popcnt")]
    fn with_features<T: Work>(self, work: T) -> T::Output {
        work.run(self)
    }
}

impl Wide for AesNi {
    const BLOCKS: usize = 1;
    type Vector = __m128i;
    type Near32 = __m128i;
    type Near16 = __m128i;

    #[inline(always)]
    fn load(self, blocks: &[u128; WIDEST]) -> __m128i {
        vector(blocks[0])
    }

    #[inline(always)]
    fn at_places(self, places: &[Place], low: u64, high: u64) -> __m128i {
        let [place] = places else { panic!("{} places for one block", places.len()) };
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_set_epi64x(high.cast_signed(), (u64::from(place.block) << 32 | low).cast_signed()) }
    }

    #[inline(always)]
    fn store(self, vector: __m128i, to: &mut [u128]) {
        assert_eq!(to.len(), Self::BLOCKS);
        // SAFETY: there is room for one block, 16 bytes.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn lanes32(self, two: [__m128i; 2], lane: u32) -> __m128i {
        // SAFETY: `self` proves AVX2, and no memory is touched.
        unsafe {
            let lane = _mm_cvtsi32_si128(lane.cast_signed());
            let [first, second] = two.map(|vector| _mm_permutevar_ps(_mm_castsi128_ps(vector), lane));
            _mm_castps_si128(_mm_movelh_ps(first, second))
        }
    }

    #[inline(always)]
    fn put_offsets(self, vector: __m128i, places: &mut [Place]) {
        assert_eq!(places.len(), 2 * Self::BLOCKS);
        // SAFETY: `self` proves AVX2; two places are 16 bytes, of each first its block, then its offset.
        unsafe {
            let places = places.as_mut_ptr().cast();
            let blocks = _mm_loadu_si128(places);
            _mm_storeu_si128(places, _mm_blend_epi32::<0b1010>(blocks, vector));
        }
    }

    instructions! {
        __m128i:
        round = _mm_aesenc_si128,
        last_round = _mm_aesenclast_si128,
        xor = _mm_xor_si128,
        and = _mm_and_si128,
        add64 = _mm_add_epi64,
        shl32 = _mm_sllv_epi32,
        mul32 = _mm_mul_epu32,
        sub32 = _mm_sub_epi32,
    }

    #[inline(always)]
    fn below32(self, a: __m128i, b: __m128i) -> u32 {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe {
            let not_below = _mm_cmpeq_epi32(_mm_max_epu32(a, b), a);
            _mm_movemask_ps(_mm_castsi128_ps(not_below)).cast_unsigned() ^ 0xf
        }
    }

    #[inline(always)]
    fn equal16(self, a: __m128i, b: __m128i) -> u32 {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(a, b), _mm_setzero_si128())).cast_unsigned() }
    }

    /// The least of every lane.
    #[inline(always)]
    fn none_near32(self) -> __m128i {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_set1_epi32(-1) }
    }

    #[inline(always)]
    fn look32(self, least: __m128i, a: __m128i, _: __m128i) -> __m128i {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_min_epu32(least, a) }
    }

    #[inline(always)]
    fn any_near32(self, least: __m128i, reach: __m128i) -> bool {
        self.below32(reach, least) != 0xf
    }

    /// Where a lane was near, all its bits.
    #[inline(always)]
    fn none_near16(self) -> __m128i {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    fn look16(self, near: __m128i, a: __m128i, bits: __m128i) -> __m128i {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_or_si128(near, _mm_cmpeq_epi16(a, bits)) }
    }

    #[inline(always)]
    fn any_near16(self, near: __m128i) -> bool {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_movemask_epi8(near) != 0 }
    }
}
