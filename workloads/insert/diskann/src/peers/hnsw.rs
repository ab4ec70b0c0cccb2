//! The in-memory index beside which ours is shown: `hnsw_rs`, a well-kept implementation of hierarchical navigable small worlds, with its
//! vector instructions. It keeps nothing when the process ends.

use hnsw_rs::prelude::{DistL2, Hnsw};

/// Neighbours per node.
const NEIGHBOURS: usize = 16;
/// Layers at most.
const LAYERS: usize = 16;

/// The index, and how its queries are asked.
pub struct Peer {
    index: Hnsw<'static, f32, DistL2>,
    len: usize,
}

impl Peer {
    /// An empty index for up to `most` vectors, whose inserts keep `list` candidates.
    #[must_use]
    pub fn new(most: usize, list: usize) -> Self {
        Self { index: Hnsw::new(NEIGHBOURS, most, LAYERS, list, DistL2 {}), len: 0 }
    }

    /// Inserts a vector; ids count from one.
    pub fn insert(&mut self, vector: &[f32]) {
        self.len += 1;
        self.index.insert((vector, self.len));
    }

    /// The ids of the `k` closest vectors found with a list of `list`.
    #[must_use]
    pub fn search(&self, query: &[f32], k: usize, list: usize) -> Vec<u64> {
        self.index.search(query, k, list).into_iter().map(|neighbour| neighbour.d_id as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_finds_inserted_entries() {
        let mut peer = Peer::new(100, 32);
        for i in 0..100_u8 {
            peer.insert(&[f32::from(i), 0.0]);
        }
        assert_eq!(peer.search(&[41.2, 0.0], 2, 32), [42, 43]);
    }
}
