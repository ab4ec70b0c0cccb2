//! Seeded vectors: the same on every machine, for the same kind, dimensions and seed.

pub mod clustered;
pub mod similar;
pub mod uniform;

use clustered::{Part, Shape};
use uniform::Lcg;

/// Seed of the document's vectors.
pub const SEED: u64 = 42;
/// Seed of the document's similar vectors.
const SIMILAR_SEED: u64 = 77_777;
/// Seed of the document's queries.
const QUERY_SEED: u64 = 99_999;

/// How vectors are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Independent coordinates: the document's "random".
    Uniform,
    /// Flat clusters.
    Clustered,
    /// Flat clusters of unequal sizes, with vectors of unequal lengths.
    Uneven,
    /// A uniform base, and inserts that all lie around one centre: the document's "similar".
    Similar,
}

assay_harness::choices!(Kind {
    "uniform" => Uniform,
    "clustered" => Clustered,
    "uneven" => Uneven,
    "similar" => Similar,
});

impl Kind {
    /// Distribution of the initial vectors of the index.
    #[must_use]
    pub fn base(self) -> Self {
        match self {
            Self::Similar => Self::Uniform,
            other => other,
        }
    }
}

/// The vectors and queries of a trial, one after the other.
#[derive(Debug, Clone)]
pub struct Data {
    /// Coordinates per vector.
    pub dims: usize,
    /// Those that are in the index at the start, then those that are inserted.
    pub vectors: Vec<f32>,
    /// Queries, from the distribution of the inserted vectors.
    pub queries: Vec<f32>,
}

impl Data {
    /// Vectors for a base of `base` and `inserted` more, with `queries` queries.
    #[must_use]
    pub fn generate(kind: Kind, dims: usize, seed: u64, base: usize, inserted: usize, queries: usize) -> Self {
        // Other streams than the document's for other seeds than the document's.
        let derived = |own: u64| own ^ seed ^ SEED;
        let (vectors, queries) = match kind {
            Kind::Uniform => (
                uniform::vectors(&mut Lcg::new(seed), dims, base + inserted),
                uniform::vectors(&mut Lcg::new(derived(QUERY_SEED)), dims, queries),
            ),
            Kind::Clustered | Kind::Uneven => {
                let shape = if kind == Kind::Uneven { Shape::Uneven } else { Shape::Even };
                (
                    clustered::vectors(seed, shape, Part::Stored, dims, 0, base + inserted),
                    clustered::vectors(seed, shape, Part::Query, dims, 0, queries),
                )
            }
            Kind::Similar => {
                let mut vectors = uniform::vectors(&mut Lcg::new(seed), dims, base);
                // Inserted vectors, then queries, from one stream, so that both have the same centre.
                let mut around = similar::vectors(&mut Lcg::new(derived(SIMILAR_SEED)), dims, inserted + queries);
                let queries = around.split_off(dims * inserted);
                vectors.extend(around);
                (vectors, queries)
            }
        };
        Self { dims, vectors, queries }
    }

    /// How many vectors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vectors.len() / self.dims
    }

    /// Whether the data set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// The vector number `index`, from zero.
    #[must_use]
    pub fn vector(&self, index: usize) -> &[f32] {
        &self.vectors[index * self.dims..][..self.dims]
    }

    /// Every query.
    pub fn queries(&self) -> impl Iterator<Item = &[f32]> + Clone {
        self.queries.chunks_exact(self.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_the_same_however_much_is_inserted() {
        for (name, kind) in Kind::CHOICES {
            let few = Data::generate(kind, 8, 42, 20, 1, 3);
            let many = Data::generate(kind, 8, 42, 20, 30, 5);
            let base = Data::generate(kind.base(), 8, 42, 20, 0, 0);
            assert_eq!(few.vectors[..160], base.vectors, "{name}");
            assert_eq!(many.vectors[..160], base.vectors, "{name}");
            assert_eq!((many.len(), many.queries().count()), (50, 5));
            assert_eq!(kind.name(), name);
        }
    }
}
