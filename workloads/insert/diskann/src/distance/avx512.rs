//! One vector of sixteen lanes.

use std::arch::x86_64::*;

use super::lanes::{LANES, finish};

/// The squared distance.
///
/// # Safety
///
/// * The CPU has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sum = _mm512_setzero_ps();
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        // SAFETY: both chunks hold sixteen numbers; the loads need no alignment.
        let difference = unsafe { _mm512_sub_ps(_mm512_loadu_ps(a.as_ptr()), _mm512_loadu_ps(b.as_ptr())) };
        // Multiplied and added in two steps: fused, it would round differently from the other paths.
        sum = _mm512_add_ps(sum, _mm512_mul_ps(difference, difference));
    }
    let mut sums = [0.0; LANES];
    // SAFETY: `sums` has room for sixteen numbers.
    unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), sum) };
    finish(sums, a, b)
}
