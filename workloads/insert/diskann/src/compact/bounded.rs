//! Nodes of an index that may exceed memory: a code of each vector, and a cache of edges.
//!
//! As in DiskANN (Subramanya et al., "DiskANN: Fast accurate billion-point nearest neighbor search on a single node",
//! NeurIPS 2019), a walk compares codes, reads the edges of expanded nodes from the disk, and reorders its candidates
//! by the vectors on the disk. Edges are selected by codes as well, as in FreshDiskANN's merge (Singh et al.,
//! arXiv:2105.09613), so that an insert reads no vector.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::MOST_EDGES;
use super::codes::{Codes, Learning};
use super::deleted::Deleted;
use super::edge_cache::EdgeCache;
use super::nodes::{Nodes, Seen, Walked};
use super::table::Table;
use super::whole::{edges_of_row, scan_vectors, vector_of_row};
use crate::beam::Beam;
use crate::distance::Meter;
use crate::error::{Error, Result};

/// Memory of a node with unwritten edges: key, edges, and overhead of map and allocator.
const DIRTY_BYTES: u64 = (size_of::<u32>() * MOST_EDGES + 64) as u64;

/// Nodes within a budget.
#[derive(Debug)]
pub(super) struct Bounded {
    dims: usize,
    /// Bytes that all of this may take.
    budget: u64,
    codes: Codes,
    len: usize,
    seen: Seen,
    /// Edges as their rows have them.
    clean: Option<EdgeCache>,
    /// Edges that their rows do not have yet.
    dirty: BTreeMap<u32, Box<[u32]>>,
    reads: u64,
    hits: u64,
}

impl Bounded {
    /// No nodes yet, in at most `budget` bytes.
    pub(super) fn new(dims: usize, budget: u64) -> Self {
        Self {
            dims,
            budget,
            codes: Codes::new(Learning::new(dims).finish(), 0),
            len: 0,
            seen: Seen::default(),
            clean: None,
            dirty: BTreeMap::new(),
            reads: 0,
            hits: 0,
        }
    }

    /// Memory of all nodes' fixed data, independent of caches.
    fn fixed_bytes(&self) -> u64 {
        self.codes.memory_bytes() + self.seen.memory_bytes()
    }

    /// Assigns the edges the memory not used by codes. A quarter is reserved for unwritten edges.
    fn share(&mut self) -> Result<()> {
        let left = self.budget.saturating_sub(self.fixed_bytes());
        self.clean = EdgeCache::within(left / 4 * 3);
        match self.clean {
            Some(_) => Ok(()),
            None => Err(Error::Budget { budget: self.budget, needed: self.fixed_bytes(), vectors: self.len }),
        }
    }

    /// Reads every vector, and makes its code. One that is gone has a code as well, so that slots have their places.
    fn encode(&mut self, deleted: &Deleted, connection: &Connection) -> Result<()> {
        let mut vector = vec![0.0; self.dims];
        let mut learning = Learning::new(self.dims);
        scan_vectors(self.len, deleted, connection, |slot, bytes| {
            vector_of_row(slot, bytes, &mut vector)?;
            learning.add(&vector);
            Ok(())
        })?;
        // The old codes go first: both together may not fit.
        self.codes = Codes::new(Learning::new(self.dims).finish(), 0);
        let mut codes = Codes::new(learning.finish(), self.len);
        let mut next = 0;
        scan_vectors(self.len, deleted, connection, |slot, bytes| {
            vector_of_row(slot, bytes, &mut vector)?;
            (next..=slot).for_each(|_| codes.push(&vector));
            next = slot + 1;
            Ok(())
        })?;
        (next as usize..self.len).for_each(|_| codes.push(&vector));
        self.codes = codes;
        Ok(())
    }
}

impl Walked for Bounded {
    type Target = Vec<u8>;
    type Source = Connection;

    fn len(&self) -> usize {
        self.len
    }

    fn target(&self, vector: &[f32]) -> Vec<u8> {
        self.codes.encode(vector)
    }

    fn squared_to(&self, slot: u32, target: &Vec<u8>, meter: &mut Meter) -> f32 {
        self.codes.squared(meter.steps(self.codes.code(slot), target))
    }

    #[inline(always)]
    fn prefetch(&self, slot: u32) {
        assay_harness::prefetch::lines(self.codes.code(slot));
    }

    fn ensure(&mut self, _: u32, _: &Connection) -> Result<()> {
        Ok(())
    }

    fn copy_edges(&mut self, slot: u32, edges: &mut Vec<u32>, connection: &Connection) -> Result<()> {
        edges.clear();
        let clean = self.clean.as_mut();
        if let Some(found) = self.dirty.get(&slot).map(|edges| &edges[..]).or_else(|| clean?.get(slot)) {
            self.hits += 1;
            edges.extend_from_slice(found);
            return Ok(());
        }
        self.reads += 1;
        let missing = || Error::Damaged(format!("the edges of {} are missing", u64::from(slot) + 1));
        let row = Table::Edge.read(connection, i64::from(slot) + 1)?.ok_or_else(missing)?;
        edges.extend(edges_of_row(slot, &row, self.len)?);
        if let Some(clean) = &mut self.clean {
            clean.put(slot, edges);
        }
        Ok(())
    }
}

impl Nodes for Bounded {
    fn dims(&self) -> usize {
        self.dims
    }

    fn load(&mut self, len: usize, deleted: &Deleted, connection: &Connection) -> Result<()> {
        *self = Self { reads: self.reads, hits: self.hits, ..Self::new(self.dims, self.budget) };
        self.len = len;
        self.seen.resize(len);
        self.encode(deleted, connection)?;
        self.share()
    }

    fn squared_between(&self, a: u32, b: u32, meter: &mut Meter) -> f32 {
        self.codes.squared(meter.steps(self.codes.code(a), self.codes.code(b)))
    }

    fn set_edges(&mut self, slot: u32, edges: &[u32]) {
        self.remove(slot);
        self.dirty.insert(slot, edges.into());
    }

    fn push(&mut self, vector: &[f32]) -> Result<u32> {
        let slot = self.len;
        self.len += 1;
        self.codes.push(vector);
        self.seen.resize(self.len);
        if self.memory_bytes() > self.budget {
            self.share()?;
        }
        Ok(slot as u32)
    }

    fn remove(&mut self, slot: u32) {
        if let Some(clean) = &mut self.clean {
            clean.remove(slot);
        }
    }

    fn dirty(&self) -> Vec<u32> {
        self.dirty.keys().copied().collect()
    }

    fn set_clean(&mut self) {
        for (slot, edges) in std::mem::take(&mut self.dirty) {
            if let Some(clean) = &mut self.clean {
                clean.put(slot, &edges);
            }
        }
    }

    fn is_crowded(&self) -> bool {
        // A sixteenth of the memory not used by codes, so that one insert's additions still fit into the quarter.
        self.dirty.len() as u64 * DIRTY_BYTES > self.budget.saturating_sub(self.fixed_bytes()) / 16
    }

    fn doubled(&mut self, deleted: &Deleted, connection: &Connection) -> Result<()> {
        self.encode(deleted, connection)
    }

    fn seen(&mut self) -> &mut Seen {
        &mut self.seen
    }

    fn reads_and_hits(&self) -> (u64, u64) {
        (self.reads, self.hits)
    }

    fn memory_bytes(&self) -> u64 {
        let clean = self.clean.as_ref().map_or(0, EdgeCache::memory_bytes);
        self.fixed_bytes() + clean + self.dirty.len() as u64 * DIRTY_BYTES
    }

    fn closest(
        &mut self,
        query: &[f32],
        beam: &Beam<u32>,
        k: usize,
        deleted: &Deleted,
        connection: &Connection,
        meter: &mut Meter,
    ) -> Result<Vec<u64>> {
        let mut vector = vec![0.0; self.dims];
        let mut found = Vec::with_capacity(beam.candidates().len());
        for candidate in beam.candidates().iter().filter(|candidate| !deleted.contains(candidate.id)) {
            let (slot, id) = (candidate.id, u64::from(candidate.id) + 1);
            let missing = || Error::Damaged(format!("vector {id} is missing"));
            let row = Table::Vector.read(connection, id.cast_signed())?.ok_or_else(missing)?;
            vector_of_row(slot, &row, &mut vector)?;
            found.push((meter.squared(query, &vector), id));
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(found.into_iter().take(k).map(|(_, id)| id).collect())
    }
}
