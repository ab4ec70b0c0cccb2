//! Sixty-four parallel sums in plain code, bit-identical to the vector instructions.
//!
//! A single sum would stall, because an addition takes four cycles and the next one depends on it. Four vectors of
//! sixteen lanes keep four additions in flight. Each difference is squared and added in one fused operation, which
//! rounds once.

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

/// Pads the remainder of a vector with zeroes, which do not change any sum.
#[inline(always)]
pub(super) fn padded(rest: &[f32]) -> [f32; LANES] {
    let mut padded = [0.0; LANES];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}
