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

    instructions! {
        __m128i:
        round = _mm_aesenc_si128,
        last_round = _mm_aesenclast_si128,
        xor = _mm_xor_si128,
        and = _mm_and_si128,
        add64 = _mm_add_epi64,
        sub32 = _mm_sub_epi32,
        min32 = _mm_min_epu32,
        min16 = _mm_min_epu16,
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
    fn any_zero16(self, a: __m128i) -> bool {
        // SAFETY: `self` proves AES-NI and AVX2, and no memory is touched.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi16(a, _mm_setzero_si128())) != 0 }
    }
}
