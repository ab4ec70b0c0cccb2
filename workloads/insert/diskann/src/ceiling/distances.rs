//! How many distances one thread can compute per second when everything lies in the first-level cache.

use std::hint::black_box;

use assay_harness::{Quantity, Stopwatch, Unit};

use crate::distance::Distance;

/// Distances of vectors of `dims` dimensions per second.
#[must_use]
pub fn distances(distance: Distance, dims: usize) -> Quantity {
    const PASSES: usize = 8;
    /// Vectors on either side: few enough for the first-level cache at 128 dimensions.
    const VECTORS: usize = 16;
    let vectors: Vec<f32> = (0..VECTORS * dims).map(|i| (i % 97) as f32 / 97.0).collect();
    let rounds = (1 << 21) / (VECTORS * VECTORS * dims) + 1;
    let best = (0..PASSES)
        .map(|_| {
            let watch = Stopwatch::start();
            for _ in 0..rounds {
                for a in vectors.chunks_exact(dims) {
                    for b in vectors.chunks_exact(dims) {
                        black_box(distance.squared(black_box(a), b));
                    }
                }
            }
            watch.seconds()
        })
        .fold(f64::INFINITY, f64::min);
    Quantity::new((rounds * VECTORS * VECTORS) as f64 / best, Unit::new("distances/s"))
}
