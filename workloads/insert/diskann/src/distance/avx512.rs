//! Four vectors of sixteen lanes.

use std::arch::x86_64::*;

use super::avx2;
use super::lanes::{LANES, padded};

/// Lanes of a vector.
const WIDTH: usize = 16;
/// Vectors of sums.
const SUMS: usize = LANES / WIDTH;

/// The squared distance.
///
/// # Safety
///
/// * The CPU has AVX-512 F, AVX2 and FMA.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [_mm512_setzero_ps(); SUMS];
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks(), b.as_chunks());
    for (a, b) in a.iter().zip(b) {
        add(&mut sums, a, b);
    }
    if !rest_of_a.is_empty() {
        add(&mut sums, &padded(rest_of_a), &padded(rest_of_b));
    }
    let [a, b, c, d] = sums;
    let sixteen = _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
    let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sixteen)));
    avx2::finish(_mm256_add_ps(_mm512_castps512_ps256(sixteen), upper))
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn add(sums: &mut [__m512; SUMS], a: &[f32; LANES], b: &[f32; LANES]) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let at = WIDTH * i;
        // SAFETY: both arrays hold sixteen numbers from `at` on; the loads need no alignment.
        let (x, y) = unsafe { (_mm512_loadu_ps(a.as_ptr().add(at)), _mm512_loadu_ps(b.as_ptr().add(at))) };
        let difference = _mm512_sub_ps(x, y);
        *sum = _mm512_fmadd_ps(difference, difference, *sum);
    }
}
