//! Sixteen sums side by side, in plain code: what the vector instructions do, and bit for bit what they give.

/// Sums side by side: the lanes of the widest vector.
pub(super) const LANES: usize = 16;

pub(super) fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            let difference = a[lane] - b[lane];
            sums[lane] += difference * difference;
        }
    }
    finish(sums, a, b)
}

/// Adds what is left over after the whole vectors, then the lanes: every path ends with this, so that all of them round alike.
#[inline(always)]
pub(super) fn finish(mut sums: [f32; LANES], a: &[f32], b: &[f32]) -> f32 {
    let whole = a.len() / LANES * LANES;
    for (lane, (x, y)) in a[whole..].iter().zip(&b[whole..]).enumerate() {
        let difference = x - y;
        sums[lane] += difference * difference;
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
