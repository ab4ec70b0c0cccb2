//! Edges that neighbours take back later: collected, sorted by neighbour, and each neighbour written once.

use super::edges;
use super::store::Store;
use crate::distance::Meter;
use crate::error::Result;
use crate::index::Work;

/// Maximum number of collected edges; later ones are added immediately.
pub const CAPACITY: usize = 16_384;

/// An edge from `node` to the new vector `id`.
#[derive(Debug, Clone)]
struct BackEdge {
    node: u64,
    id: u64,
    vector: Vec<f32>,
}

/// Collected edges.
#[derive(Debug, Clone, Default)]
pub struct Deferred(Vec<BackEdge>);

impl Deferred {
    /// Collects an edge from `node` to `id`. `false` when there is no room.
    pub fn push(&mut self, node: u64, id: u64, vector: &[f32]) -> bool {
        let room = self.0.len() < CAPACITY;
        if room {
            self.0.push(BackEdge { node, id, vector: vector.to_vec() });
        }
        room
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let vectors: usize = self.0.iter().map(|edge| size_of_val(&edge.vector[..])).sum();
        (self.0.capacity() * size_of::<BackEdge>() + vectors) as u64
    }

    /// Forgets everything, because the vectors it leads to were rolled back.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives the nodes their edges, and counts them. Each is asked again, for it may have got closer neighbours in the meantime.
    ///
    /// # Errors
    ///
    /// When the store refuses.
    pub fn flush<S: Store>(&mut self, store: &mut S, meter: &mut Meter, work: &mut Work) -> Result<()> {
        self.0.sort_by_key(|edge| edge.node);
        for edges_of_one in self.0.chunk_by(|a, b| a.node == b.node) {
            let mut node = store.open(edges_of_one[0].node, true)?;
            let slots = store.layout().slots();
            let accepted = edges_of_one
                .iter()
                .filter(|edge| edges::connect(&mut node.block, edge.id, &edge.vector, slots, meter))
                .count();
            work.back_edges_accepted += accepted as u64;
            if accepted > 0 {
                store.write(&mut node)?;
                work.node_writes += 1;
            }
            store.close(node);
        }
        self.0.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::super::store::Memory;
    use super::*;
    use crate::distance::Distance;

    #[test]
    fn a_node_is_written_once_however_many_edges_it_gets_and_a_full_list_says_so() {
        let mut store = Memory::new(Layout::new(2, 24 + 24 * 4).unwrap());
        for (id, point) in [(1, [0.0, 0.0]), (2, [9.0, 9.0])] {
            let node = store.create(id, &point).unwrap();
            store.close(node);
        }
        let mut deferred = Deferred::default();
        for (id, point) in [(3, [1.0, 0.0]), (4, [-1.0, 0.0]), (5, [0.0, 1.0])] {
            assert!(deferred.push(1, id, &point));
        }
        let (mut meter, mut work) = (Meter::new(Distance::SCALAR), Work::default());
        deferred.flush(&mut store, &mut meter, &mut work).unwrap();
        let expected = Work { back_edges_accepted: 3, node_writes: 1, ..Work::default() };
        assert_eq!(work, expected);
        assert_eq!(store.open(1, false).unwrap().block.edges(), 3);

        for id in 0..CAPACITY as u64 {
            assert!(deferred.push(2, id, &[0.0, 0.0]));
        }
        assert!(!deferred.push(2, 1, &[0.0, 0.0]));
        deferred.clear();
        deferred.flush(&mut store, &mut meter, &mut work).unwrap();
        assert_eq!(work, expected);
    }
}
