//! Edges of the nodes that walks came by lately, in a fixed amount of memory.
//!
//! Each node has a set of eight places where its edges may lie. In a full set they take the place of a node that was not asked for since
//! the hand last passed it (the clock algorithm, within a set).

use super::MOST_EDGES;

/// Places per set.
const WAYS: usize = 8;
/// Bytes of a place: whose it is, how many edges, whether it was used, and the edges.
const PLACE_BYTES: u64 = (size_of::<u32>() + 2 + size_of::<u32>() * MOST_EDGES) as u64;
/// Bytes of a set.
const SET_BYTES: u64 = WAYS as u64 * PLACE_BYTES + 1;
/// No node.
const NOBODY: u32 = u32::MAX;

/// The cache.
#[derive(Debug)]
pub(super) struct EdgeCache {
    nodes: Vec<u32>,
    degrees: Vec<u8>,
    used: Vec<bool>,
    edges: Vec<u32>,
    hands: Vec<u8>,
}

impl EdgeCache {
    /// Creates the largest cache within `bytes`; `None` if not even one set fits.
    pub(super) fn within(bytes: u64) -> Option<Self> {
        let sets = usize::try_from(bytes / SET_BYTES).ok().filter(|sets| *sets > 0)?;
        let places = WAYS * sets;
        Some(Self {
            nodes: vec![NOBODY; places],
            degrees: vec![0; places],
            used: vec![false; places],
            edges: vec![0; places * MOST_EDGES],
            hands: vec![0; sets],
        })
    }

    /// The first place of a node's set.
    fn set(&self, node: u32) -> usize {
        let sets = self.hands.len() as u64;
        // Multiplied, so that neighbours in the file lie in different sets, and scaled to the number of sets.
        let hash = u64::from(node.wrapping_mul(0x9e37_79b9));
        WAYS * ((hash * sets) >> 32) as usize
    }

    fn place(&self, node: u32) -> Option<usize> {
        let set = self.set(node);
        (set..set + WAYS).find(|place| self.nodes[*place] == node)
    }

    /// The edges of `node`, if they are here.
    pub(super) fn get(&mut self, node: u32) -> Option<&[u32]> {
        let place = self.place(node)?;
        self.used[place] = true;
        Some(&self.edges[place * MOST_EDGES..][..usize::from(self.degrees[place])])
    }

    /// Takes the edges of `node` in.
    pub(super) fn put(&mut self, node: u32, edges: &[u32]) {
        let place = self.place(node).unwrap_or_else(|| self.free(node));
        // Used when it is asked for: one that never is goes before one that is.
        self.nodes[place] = node;
        self.degrees[place] = u8::try_from(edges.len()).expect("a node has at most 48 edges");
        self.edges[place * MOST_EDGES..][..edges.len()].copy_from_slice(edges);
    }

    /// A place for `node`: one that is empty, or was not used since the hand last passed it.
    fn free(&mut self, node: u32) -> usize {
        let set = self.set(node);
        let hand = &mut self.hands[set / WAYS];
        loop {
            let place = set + usize::from(*hand);
            *hand = (*hand + 1) % WAYS as u8;
            if !std::mem::replace(&mut self.used[place], false) {
                return place;
            }
        }
    }

    /// Forgets the edges of `node`.
    pub(super) fn remove(&mut self, node: u32) {
        if let Some(place) = self.place(node) {
            (self.nodes[place], self.used[place]) = (NOBODY, false);
        }
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let words = self.nodes.capacity() + self.edges.capacity();
        let bytes = self.degrees.capacity() + self.used.capacity() + self.hands.capacity();
        (size_of::<u32>() * words + bytes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Entries may be evicted, but a hit returns the latest value, and the size stays within its limit.
        #[test]
        fn cache_returns_the_latest_value(
            steps in prop::collection::vec((0_u32..200, prop::collection::vec(any::<u32>(), 0..=MOST_EDGES), 0_u8..8), 1..600),
            bytes in SET_BYTES..20 * SET_BYTES,
        ) {
            let mut cache = EdgeCache::within(bytes).unwrap();
            prop_assert!(cache.memory_bytes() <= bytes);
            let mut model: HashMap<u32, Vec<u32>> = HashMap::new();
            for (node, edges, what) in steps {
                match what {
                    0 => {
                        cache.remove(node);
                        model.remove(&node);
                        prop_assert_eq!(cache.get(node), None);
                    }
                    1..4 => {
                        if let Some(found) = cache.get(node) {
                            prop_assert_eq!(Some(found), model.get(&node).map(Vec::as_slice));
                        }
                    }
                    _ => {
                        cache.put(node, &edges);
                        prop_assert_eq!(cache.get(node), Some(&edges[..]));
                        model.insert(node, edges);
                    }
                }
            }
        }
    }

    #[test]
    fn nodes_are_spread_over_all_sets() {
        let mut cache = EdgeCache::within(100 * SET_BYTES).unwrap();
        // Half as many as there are places.
        (0..400).for_each(|node| cache.put(node, &[node]));
        let there = (0..400).filter(|node| cache.get(*node).is_some()).count();
        assert!(there > 380, "{there} of 400");
    }

    #[test]
    fn frequently_used_entries_stay_cached() {
        let mut cache = EdgeCache::within(SET_BYTES).unwrap();
        cache.put(7, &[1, 2, 3]);
        for node in 100..200 {
            assert_eq!(cache.get(7), Some(&[1, 2, 3][..]), "{node}");
            cache.put(node, &[node]);
        }
        assert!(EdgeCache::within(SET_BYTES - 1).is_none());
    }
}
