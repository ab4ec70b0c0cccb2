//! The document's loop: one sum, in order. The order is part of the result, so the compiler may not use vectors.

pub(super) fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sum = 0.0;
    for (x, y) in a.iter().zip(b) {
        let difference = x - y;
        sum += difference * difference;
    }
    sum
}
