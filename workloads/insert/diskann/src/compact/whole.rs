//! All nodes in memory: vectors, and edges in a separate array.

use rusqlite::Connection;

use super::MOST_EDGES;
use super::coordinates::Coordinates;
use super::deleted::Deleted;
use super::nodes::{Nodes, Seen, Walked, closest_found, slots};
use super::record::ids_from_bytes;
use super::table::Table;
use crate::beam::Beam;
use crate::distance::Meter;
use crate::error::{Error, Result};
use crate::index::NodeCache;

/// Vectors and edges, by slot.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    dims: usize,
    cache: NodeCache,
    vectors: Coordinates,
    edges: Vec<u32>,
    degrees: Vec<u8>,
    /// Which slots are filled; the others are read when they are needed.
    present: Vec<bool>,
    absent: usize,
    /// Which slots have other edges than the table, and the list of them.
    dirty: Vec<bool>,
    dirty_slots: Vec<u32>,
    reads: u64,
    hits: u64,
    seen: Seen,
}

impl Whole {
    /// No nodes yet.
    pub(super) fn new(dims: usize, cache: NodeCache) -> Self {
        Self {
            dims,
            cache,
            vectors: Coordinates::default(),
            edges: Vec::new(),
            degrees: Vec::new(),
            present: Vec::new(),
            absent: 0,
            dirty: Vec::new(),
            dirty_slots: Vec::new(),
            reads: 0,
            hits: 0,
            seen: Seen::default(),
        }
    }

    fn resize(&mut self, len: usize) {
        self.vectors.grow_to(len * self.dims);
        self.edges.resize(len * MOST_EDGES, 0);
        self.degrees.resize(len, 0);
        self.present.resize(len, false);
        self.dirty.resize(len, false);
        self.seen.resize(len);
    }

    /// Whether every node always lies in memory.
    pub(super) fn keeps_all(&self) -> bool {
        self.cache == NodeCache::PerBatch
    }

    /// The coordinates of `len` nodes from `slot` on, of those that lie in memory.
    pub(super) fn vectors(&self, slot: usize, len: usize) -> &[f32] {
        &self.vectors[slot * self.dims..][..len * self.dims]
    }

    fn vector(&self, slot: u32) -> &[f32] {
        &self.vectors[slot as usize * self.dims..][..self.dims]
    }

    /// The edges of a node that is in memory.
    pub(super) fn edges(&self, slot: u32) -> &[u32] {
        let slot = slot as usize;
        &self.edges[slot * MOST_EDGES..][..usize::from(self.degrees[slot])]
    }

    /// Sets a node's edges in memory, independent of its row.
    pub(super) fn fill_edges(&mut self, slot: u32, edges: &[u32]) {
        let slot = slot as usize;
        self.edges[slot * MOST_EDGES..][..edges.len()].copy_from_slice(edges);
        self.degrees[slot] = u8::try_from(edges.len()).expect("a node has at most 48 edges");
    }

    /// Forgets every node whose edges are in the table.
    fn forget(&mut self) {
        for (present, dirty) in self.present.iter_mut().zip(&self.dirty) {
            if *present && !dirty {
                *present = false;
                self.absent += 1;
            }
        }
    }

    /// Reads everything at once, in the order of the tables.
    fn read_all(&mut self, deleted: &Deleted, connection: &Connection) -> Result<()> {
        scan_vectors(self.len(), deleted, connection, |slot, bytes| self.fill_vector(slot, bytes))?;
        Table::Edge.scan(connection, |id, bytes| match u32::try_from(id - 1) {
            Ok(slot) if (slot as usize) < self.len() => {
                let edges = edges_of_row(slot, bytes, self.len())?;
                self.fill_edges(slot, &edges);
                Ok(())
            }
            _ => Err(Error::Damaged(format!("there are edges of {id}, which is not there"))),
        })?;
        self.present.fill(true);
        self.absent = 0;
        Ok(())
    }

    fn read(&mut self, slot: u32, connection: &Connection) -> Result<()> {
        let id = i64::from(slot) + 1;
        let missing = || Error::Damaged(format!("vector {id} is missing"));
        self.fill_vector(slot, &Table::Vector.read(connection, id)?.ok_or_else(missing)?)?;
        // Edges that are in the log only are not in the table yet.
        let edges = Table::Edge.read(connection, id)?.unwrap_or_default();
        let edges = edges_of_row(slot, &edges, self.len())?;
        self.fill_edges(slot, &edges);
        self.present[slot as usize] = true;
        self.absent -= 1;
        self.reads += 1;
        Ok(())
    }

    /// Adds the next node.
    pub(super) fn append(&mut self, vector: &[f32]) -> u32 {
        let slot = self.present.len();
        self.resize(slot + 1);
        self.vectors[slot * self.dims..].copy_from_slice(vector);
        self.present[slot] = true;
        slot as u32
    }

    fn fill_vector(&mut self, slot: u32, bytes: &[u8]) -> Result<()> {
        let to = &mut self.vectors[slot as usize * self.dims..][..self.dims];
        vector_of_row(slot, bytes, to)
    }
}

/// Calls `each` for every vector of an index of `len`, in order, and sees to it that none is missing but those that are gone.
pub(super) fn scan_vectors(
    len: usize,
    deleted: &Deleted,
    connection: &Connection,
    mut each: impl FnMut(u32, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut next = 0;
    Table::Vector.scan(connection, |id, bytes| {
        let expected = deleted.next_slot(next);
        if id != i64::from(expected) + 1 {
            let expected = u64::from(expected) + 1;
            return Err(Error::Damaged(format!("vector {id} stands where {expected} should")));
        }
        next = expected + 1;
        each(expected, bytes)
    })?;
    match deleted.next_slot(next) as usize {
        end if end >= len => Ok(()),
        missing => Err(Error::Damaged(format!("vector {} is missing", missing + 1))),
    }
}

/// The coordinates in a row of vectors.
pub(super) fn vector_of_row(slot: u32, bytes: &[u8], to: &mut [f32]) -> Result<()> {
    let to: &mut [u8] = bytemuck::cast_slice_mut(to);
    if to.len() != bytes.len() {
        let (found, expected) = (bytes.len(), to.len());
        return Err(Error::Damaged(format!("vector {} has {found} bytes and not {expected}", slot + 1)));
    }
    to.copy_from_slice(bytes);
    Ok(())
}

/// The slots in a row of edges, in an index of `len` vectors.
pub(super) fn edges_of_row(slot: u32, bytes: &[u8], len: usize) -> Result<Vec<u32>> {
    let ids = ids_from_bytes(bytes).filter(|ids| ids.len() <= MOST_EDGES);
    let invalid =
        || Error::Damaged(format!("{} bytes are not valid edges of vector {}", bytes.len(), u64::from(slot) + 1));
    slots(&ids.ok_or_else(invalid)?, len)
}

impl Walked for Whole {
    type Target = Coordinates;
    type Source = Connection;

    fn len(&self) -> usize {
        self.present.len()
    }

    fn target(&self, vector: &[f32]) -> Coordinates {
        vector.into()
    }

    fn squared_to(&self, slot: u32, target: &Coordinates, meter: &mut Meter) -> f32 {
        meter.squared(self.vector(slot), target)
    }

    #[inline(always)]
    fn prefetch(&self, slot: u32) {
        assay_harness::prefetch::lines(self.vector(slot));
    }

    #[inline]
    fn ensure(&mut self, slot: u32, connection: &Connection) -> Result<()> {
        if self.absent == 0 || self.present[slot as usize] {
            self.hits += 1;
            return Ok(());
        }
        self.read(slot, connection)
    }

    fn copy_edges(&mut self, slot: u32, edges: &mut Vec<u32>, _: &Connection) -> Result<()> {
        edges.clear();
        edges.extend_from_slice(self.edges(slot));
        Ok(())
    }
}

/// Immutable nodes, all of them in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Still<'a>(pub(super) &'a Whole);

impl Walked for Still<'_> {
    type Target = Coordinates;
    type Source = ();

    fn len(&self) -> usize {
        self.0.len()
    }

    fn target(&self, vector: &[f32]) -> Coordinates {
        self.0.target(vector)
    }

    fn squared_to(&self, slot: u32, target: &Coordinates, meter: &mut Meter) -> f32 {
        self.0.squared_to(slot, target, meter)
    }

    #[inline(always)]
    fn prefetch(&self, slot: u32) {
        self.0.prefetch(slot);
    }

    #[inline]
    fn ensure(&mut self, _: u32, (): &()) -> Result<()> {
        Ok(())
    }

    fn copy_edges(&mut self, slot: u32, edges: &mut Vec<u32>, (): &()) -> Result<()> {
        edges.clear();
        edges.extend_from_slice(self.0.edges(slot));
        Ok(())
    }
}

impl Nodes for Whole {
    fn dims(&self) -> usize {
        self.dims
    }

    fn load(&mut self, len: usize, deleted: &Deleted, connection: &Connection) -> Result<()> {
        *self = Self { reads: self.reads, hits: self.hits, ..Self::new(self.dims, self.cache) };
        self.resize(len);
        self.absent = len;
        match self.cache {
            NodeCache::PerBatch => self.read_all(deleted, connection),
            NodeCache::None => Ok(()),
        }
    }

    fn begin(&mut self) {
        if self.cache == NodeCache::None {
            self.forget();
        }
    }

    fn squared_between(&self, a: u32, b: u32, meter: &mut Meter) -> f32 {
        meter.squared(self.vector(a), self.vector(b))
    }

    fn set_edges(&mut self, slot: u32, edges: &[u32]) {
        self.fill_edges(slot, edges);
        if !std::mem::replace(&mut self.dirty[slot as usize], true) {
            self.dirty_slots.push(slot);
        }
    }

    fn push(&mut self, vector: &[f32]) -> Result<u32> {
        Ok(self.append(vector))
    }

    fn remove(&mut self, slot: u32) {
        self.fill_edges(slot, &[]);
    }

    fn dirty(&self) -> Vec<u32> {
        let mut slots = self.dirty_slots.clone();
        slots.sort_unstable();
        slots
    }

    fn set_clean(&mut self) {
        for slot in self.dirty_slots.drain(..) {
            self.dirty[slot as usize] = false;
        }
    }

    fn seen(&mut self) -> &mut Seen {
        &mut self.seen
    }

    fn reads_and_hits(&self) -> (u64, u64) {
        (self.reads, self.hits)
    }

    fn memory_bytes(&self) -> u64 {
        let words = self.edges.capacity() + self.dirty_slots.capacity();
        let bytes = self.degrees.capacity() + self.present.capacity() + self.dirty.capacity();
        (4 * words + bytes) as u64 + self.vectors.memory_bytes() + self.seen.memory_bytes()
    }

    fn closest(
        &mut self,
        _: &[f32],
        beam: &Beam<u32>,
        k: usize,
        deleted: &Deleted,
        _: &Connection,
        _: &mut Meter,
    ) -> Result<Vec<u64>> {
        Ok(closest_found(beam, k, deleted))
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::bypass;
    use super::*;
    use crate::distance::Distance;

    #[test]
    fn edges_to_deleted_nodes_lead_past_them() {
        // Nodes that lie in all directions from the first, so that no edge makes another needless.
        let points = [[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]];
        for (what, edges, gone, start, expected, changed) in [
            ("none is deleted", vec![vec![1, 2]], vec![3], None, vec![1, 2], vec![]),
            ("to where a deleted one leads", vec![vec![1, 3], vec![0, 2, 4]], vec![1], None, vec![2, 3, 4], vec![0]),
            (
                "past deleted ones that lead to deleted ones",
                vec![vec![1], vec![2], vec![1, 3]],
                vec![1, 2],
                None,
                vec![3],
                vec![0],
            ),
            (
                "past one that leads back or to a deleted one",
                vec![vec![1], vec![0, 2], vec![4]],
                vec![1, 2],
                None,
                vec![4],
                vec![0],
            ),
            (
                "no further than the first that is there",
                vec![vec![1], vec![2, 3], vec![4]],
                vec![1, 2],
                None,
                vec![3],
                vec![0],
            ),
            ("in circles", vec![vec![1], vec![2], vec![1]], vec![1, 2], None, vec![], vec![0]),
            ("to the start, if to no other node", vec![vec![1], vec![0]], vec![1], Some(4), vec![4], vec![0, 4]),
            ("but not to itself", vec![vec![1], vec![0]], vec![1], Some(0), vec![], vec![0]),
        ] {
            let mut nodes = Whole::new(2, NodeCache::PerBatch);
            for point in &points {
                nodes.append(point);
            }
            (0..).zip(&edges).for_each(|(slot, edges)| nodes.fill_edges(slot, edges));
            let mut deleted = Deleted::default();
            gone.iter().for_each(|slot| deleted.insert(*slot));
            let connection = Connection::open_in_memory().unwrap();
            let mut meter = Meter::new(Distance::SCALAR);
            let found = bypass(&mut nodes, 0, &deleted, start, &connection, &mut meter).unwrap();
            let mut left = nodes.edges(0).to_vec();
            left.sort_unstable();
            assert_eq!((left, found), (expected, changed), "{what}");
            if let Some(start) = start.filter(|start| *start != 0) {
                assert_eq!(nodes.edges(start), [0], "{what}");
            }
        }
    }
}
