//! Twenty flat clusters: a point is its cluster's centre plus a combination of 24 directions of that cluster plus a
//! little noise. Embeddings of real objects resemble this more than uniform noise, because they have many coordinates
//! and few degrees of freedom.
//!
//! In the [uneven](Shape::Uneven) shape some clusters are much larger than others, and some vectors much longer. Real
//! collections have this property, and it is difficult for an index whose distances depend on lengths.

use crate::start::Draws;

/// Clusters.
const CLUSTERS: u64 = 20;
/// Degrees of freedom within a cluster.
const DIRECTIONS: usize = 24;
/// The expected squared length of a direction.
const DIRECTION_LENGTH_SQUARED: f32 = 0.25;
/// How far noise moves a coordinate at most.
const NOISE: f32 = 0.05;

/// Which part of the stream a number comes from. Zero is that of the clusters.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// The vectors of an index.
    Stored = 1,
    /// Queries.
    Query,
}

/// How points are spread over the clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// All clusters are equally likely, and vectors about equally long.
    Even,
    /// The first clusters have most points, and vectors are up to sixteen times as long as others.
    Uneven,
}

/// A well-mixed number for every index of every stream.
struct Stream(Draws);

impl Stream {
    fn new(seed: u64, purpose: u64, index: u64) -> Self {
        let mut draws = Draws::new(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(Draws::new(draws.draw() ^ index.wrapping_mul(0xa076_1d64_78bd_642f)))
    }

    /// In [0, 1).
    fn unit(&mut self) -> f32 {
        (self.0.draw() >> 40) as f32 / (1 << 24) as f32
    }

    /// In [-1, 1).
    fn signed(&mut self) -> f32 {
        2.0 * self.unit() - 1.0
    }
}

/// `count` vectors from number `first` of a part. A vector depends on nothing but the seed, its part and its number.
#[must_use]
pub fn vectors(seed: u64, shape: Shape, part: Part, dims: usize, first: usize, count: usize) -> Vec<f32> {
    // A coordinate of a direction is uniform in [-s, s) and has the mean square s^2 / 3.
    let scale = (3.0 * DIRECTION_LENGTH_SQUARED / dims as f32).sqrt();
    let clusters: Vec<Vec<f32>> = (0..CLUSTERS)
        .map(|cluster| {
            let mut stream = Stream::new(seed, 0, cluster);
            let centre = (0..dims).map(|_| stream.unit()).collect::<Vec<_>>();
            let directions = (0..DIRECTIONS * dims).map(|_| scale * stream.signed()).collect::<Vec<_>>();
            [centre, directions].concat()
        })
        .collect();
    let mut all = Vec::with_capacity(dims * count);
    for index in first..first + count {
        let mut stream = Stream::new(seed, part as u64, index as u64);
        let (cluster, length) = match shape {
            Shape::Even => (stream.0.draw() % CLUSTERS, 1.0),
            Shape::Uneven => {
                // The least of three: a share of 1 - (1 - x)^3 lies in the first x of the clusters.
                let least = (0..3).map(|_| stream.unit()).fold(1.0, f32::min);
                // Only operations with identical rounding on every machine.
                let unit = stream.unit();
                ((least * CLUSTERS as f32) as u64, 0.25 + 3.75 * unit * unit)
            }
        };
        let (centre, directions) = clusters[cluster as usize].split_at(dims);
        let weights: [f32; DIRECTIONS] = std::array::from_fn(|_| stream.signed());
        all.extend((0..dims).map(|d| {
            let shift: f32 = weights.iter().enumerate().map(|(j, weight)| weight * directions[j * dims + d]).sum();
            length * (centre[d] + shift + NOISE * stream.signed())
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_does_not_depend_on_how_many_are_asked_for() {
        for shape in [Shape::Even, Shape::Uneven] {
            let ten = vectors(7, shape, Part::Stored, 12, 0, 10);
            assert_eq!(ten[12 * 4..12 * 6], vectors(7, shape, Part::Stored, 12, 4, 2));
            assert_ne!(ten, vectors(8, shape, Part::Stored, 12, 0, 10));
            assert_ne!(ten, vectors(7, shape, Part::Query, 12, 0, 10));
        }
    }

    fn squared(all: &[f32], a: usize, b: usize) -> f32 {
        let [a, b] = [a, b].map(|i| &all[128 * i..128 * (i + 1)]);
        a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
    }

    #[test]
    fn clusters_lie_apart() {
        let all = vectors(7, Shape::Even, Part::Stored, 128, 0, 400);
        let mut distances: Vec<f32> =
            (0..400).flat_map(|a| (0..a).map(move |b| (a, b))).map(|(a, b)| squared(&all, a, b)).collect();
        distances.sort_by(f32::total_cmp);
        // One pair in twenty shares a cluster; between clusters the squared distance is 128 / 6 on average.
        let (close, far) = (distances[distances.len() / 80], distances[distances.len() / 2]);
        assert!(close < 6.0 && far > 15.0, "{close} {far}");
    }

    #[test]
    fn uneven_ones_have_unequal_norms_and_sizes() {
        let norms = |shape| -> Vec<f32> {
            let all = vectors(7, shape, Part::Stored, 128, 0, 400);
            let mut norms: Vec<f32> =
                all.chunks_exact(128).map(|vector| vector.iter().map(|x| x * x).sum::<f32>().sqrt()).collect();
            norms.sort_by(f32::total_cmp);
            norms
        };
        let (even, uneven) = (norms(Shape::Even), norms(Shape::Uneven));
        assert!(even[399] < 1.5 * even[0], "{} {}", even[0], even[399]);
        assert!(uneven[380] > 8.0 * uneven[20], "{} {}", uneven[20], uneven[380]);

        // Divided by its length, a vector lies close to others of its cluster. The largest holds a seventh of all.
        let mut all = vectors(7, Shape::Uneven, Part::Stored, 128, 0, 400);
        for vector in all.chunks_exact_mut(128) {
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= norm);
        }
        let close = |a: usize| (0..400).filter(|b| squared(&all, a, *b) < 0.15).count();
        let mut sizes: Vec<usize> = (0..400).map(close).collect();
        sizes.sort_unstable();
        assert!(sizes[399] > 5 * sizes[20], "{} {}", sizes[20], sizes[399]);
    }
}
