//! Two vectors of eight lanes.

use std::arch::x86_64::*;

use super::lanes::{LANES, finish};

/// The squared distance.
///
/// # Safety
///
/// * The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn squared(a: &[f32], b: &[f32]) -> f32 {
    let (mut low, mut high) = (_mm256_setzero_ps(), _mm256_setzero_ps());
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        // SAFETY: both chunks hold sixteen numbers; the loads need no alignment.
        let [a0, a1, b0, b1] =
            unsafe { [a.as_ptr(), a.as_ptr().add(8), b.as_ptr(), b.as_ptr().add(8)].map(|at| _mm256_loadu_ps(at)) };
        let (d0, d1) = (_mm256_sub_ps(a0, b0), _mm256_sub_ps(a1, b1));
        // Multiplied and added in two steps: fused, it would round differently from the other paths.
        low = _mm256_add_ps(low, _mm256_mul_ps(d0, d0));
        high = _mm256_add_ps(high, _mm256_mul_ps(d1, d1));
    }
    let mut sums = [0.0; LANES];
    // SAFETY: `sums` has room for two vectors of eight.
    unsafe {
        _mm256_storeu_ps(sums.as_mut_ptr(), low);
        _mm256_storeu_ps(sums.as_mut_ptr().add(8), high);
    }
    finish(sums, a, b)
}
