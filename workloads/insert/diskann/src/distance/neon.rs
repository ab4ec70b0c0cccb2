//! Sixteen vectors of four lanes.

use std::arch::aarch64::*;

use super::lanes::{LANES, padded};

/// Lanes of a vector.
const WIDTH: usize = 4;
/// Vectors of sums.
const SUMS: usize = LANES / WIDTH;

/// The squared distance.
///
/// # Safety
///
/// * The CPU has NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [vdupq_n_f32(0.0); SUMS];
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks(), b.as_chunks());
    for (a, b) in a.iter().zip(b) {
        add(&mut sums, a, b);
    }
    if !rest_of_a.is_empty() {
        add(&mut sums, &padded(rest_of_a), &padded(rest_of_b));
    }
    let mut width = SUMS / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] = vaddq_f32(sums[i], sums[i + width]);
        }
        width /= 2;
    }
    let two = vadd_f32(vget_low_f32(sums[0]), vget_high_f32(sums[0]));
    vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
}

#[inline]
#[target_feature(enable = "neon")]
fn add(sums: &mut [float32x4_t; SUMS], a: &[f32; LANES], b: &[f32; LANES]) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let at = WIDTH * i;
        // SAFETY: both arrays hold four numbers from `at` on; the loads need no alignment.
        let (x, y) = unsafe { (vld1q_f32(a.as_ptr().add(at)), vld1q_f32(b.as_ptr().add(at))) };
        let difference = vsubq_f32(x, y);
        *sum = vfmaq_f32(*sum, difference, difference);
    }
}
