//! Eight vectors of eight lanes.

use std::arch::x86_64::*;

use super::lanes::{LANES, padded};

/// Lanes of a vector.
const WIDTH: usize = 8;
/// Vectors of sums.
const SUMS: usize = LANES / WIDTH;

/// The squared distance.
///
/// # Safety
///
/// * The CPU has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [_mm256_setzero_ps(); SUMS];
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks(), b.as_chunks());
    for (a, b) in a.iter().zip(b) {
        add(&mut sums, a, b);
    }
    if !rest_of_a.is_empty() {
        add(&mut sums, &padded(rest_of_a), &padded(rest_of_b));
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let [a, b, c, d] = [_mm256_add_ps(a, e), _mm256_add_ps(b, f), _mm256_add_ps(c, g), _mm256_add_ps(d, h)];
    finish(_mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn add(sums: &mut [__m256; SUMS], a: &[f32; LANES], b: &[f32; LANES]) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let at = WIDTH * i;
        // SAFETY: both arrays hold eight numbers from `at` on; the loads need no alignment.
        let (x, y) = unsafe { (_mm256_loadu_ps(a.as_ptr().add(at)), _mm256_loadu_ps(b.as_ptr().add(at))) };
        let difference = _mm256_sub_ps(x, y);
        *sum = _mm256_fmadd_ps(difference, difference, *sum);
    }
}

/// The sum of the lanes: the upper half is added to the lower until one is left.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn finish(eight: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}
