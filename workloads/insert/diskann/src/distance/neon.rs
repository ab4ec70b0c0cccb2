//! Four vectors of four lanes.

use std::arch::aarch64::*;

use super::lanes::{LANES, finish};

/// The squared distance.
///
/// # Safety
///
/// * The CPU has NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn squared(a: &[f32], b: &[f32]) -> f32 {
    const LANES_OF_ONE: usize = 4;
    let mut sums = [vdupq_n_f32(0.0); LANES / LANES_OF_ONE];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: both chunks hold sixteen numbers; the loads need no alignment.
            let [x, y] = unsafe { [a, b].map(|from| vld1q_f32(from.as_ptr().add(LANES_OF_ONE * i))) };
            let difference = vsubq_f32(x, y);
            // Multiplied and added in two steps: fused, it would round differently from the other paths.
            *sum = vaddq_f32(*sum, vmulq_f32(difference, difference));
        }
    }
    let mut lanes = [0.0; LANES];
    for (part, sum) in lanes.chunks_exact_mut(LANES_OF_ONE).zip(sums) {
        // SAFETY: `part` has room for four numbers.
        unsafe { vst1q_f32(part.as_mut_ptr(), sum) };
    }
    finish(lanes, a, b)
}
