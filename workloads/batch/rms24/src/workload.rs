//! Which entries are asked for.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::offline::below;

/// The order of the wanted entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indices {
    /// The document's: 0, 1, 2 and so on, all of them in the first block.
    Sequential,
    /// Any entry, with equal probability.
    Uniform,
}

assay_harness::choices!(Indices { "sequential" => Sequential, "uniform" => Uniform });

impl Indices {
    /// The first `count` wanted entries.
    #[must_use]
    pub fn take(self, count: usize, entries: u32, seed: u64) -> Vec<u32> {
        match self {
            Self::Sequential => (0..count as u64).map(|i| (i % u64::from(entries)) as u32).collect(),
            Self::Uniform => {
                let mut rng = ChaCha12Rng::seed_from_u64(seed ^ 0x001d_1ce5);
                (0..count).map(|_| below(&mut rng, entries)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Indices;

    #[test]
    fn sequential_wraps_and_uniform_repeats_with_its_seed_only() {
        assert_eq!(Indices::Sequential.take(5, 3, 1), [0, 1, 2, 0, 1]);
        let uniform = |seed| Indices::Uniform.take(100, 1 << 20, seed);
        assert_eq!(uniform(1), uniform(1));
        assert_ne!(uniform(1), uniform(2));
        assert!(uniform(1).iter().all(|index| *index < 1 << 20));
    }
}
