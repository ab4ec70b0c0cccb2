//! Sixty-four sums side by side, in plain code: what the vector instructions do, and bit for bit what they give.
//!
//! One sum must wait for itself: an addition takes four cycles, and the next needs its outcome. Four vectors of the widest kind, of
//! sixteen lanes each, have four additions under way. Each difference is squared and added in one step (fused), which rounds once.

/// Sums side by side: four times the lanes of the widest vector.
pub(super) const LANES: usize = 64;

/// The squared distance. Where the compiler may not assume a fused instruction this is slow: the reference, and the last resort.
pub(super) fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((sum, x), y) in sums.iter_mut().zip(a).zip(b) {
            let difference = x - y;
            *sum = difference.mul_add(difference, *sum);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// What is left of a vector after the last whole step, with zeroes behind it: zeroes do not differ, and change no sum.
#[inline(always)]
pub(super) fn padded(rest: &[f32]) -> [f32; LANES] {
    let mut padded = [0.0; LANES];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}
