//! The graph in memory: what a walk reads.

use rusqlite::Connection;

use super::MOST_EDGES;
use super::prune::{Candidate, select};
use super::record::{Change, Record, ids_from_bytes};
use super::table::Table;
use crate::beam::Beam;
use crate::distance::Meter;
use crate::error::{Error, Result};

/// Vectors and edges, by slot: the vector with id 1 is in slot 0.
#[derive(Debug)]
pub(super) struct Graph {
    dims: usize,
    vectors: Vec<f32>,
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
    /// In which walk a slot was last seen.
    seen: Vec<u32>,
    walk: u32,
}

impl Graph {
    /// A graph of `len` vectors of which none is read yet.
    pub(super) fn new(dims: usize, len: usize) -> Self {
        let mut graph = Self {
            dims,
            vectors: Vec::new(),
            edges: Vec::new(),
            degrees: Vec::new(),
            present: Vec::new(),
            absent: 0,
            dirty: Vec::new(),
            dirty_slots: Vec::new(),
            reads: 0,
            hits: 0,
            seen: Vec::new(),
            walk: 0,
        };
        graph.resize(len);
        graph.absent = len;
        graph
    }

    /// The same with `len` vectors of which none is read yet; what was counted stays.
    pub(super) fn renewed(&self, len: usize) -> Self {
        Self { reads: self.reads, hits: self.hits, ..Self::new(self.dims, len) }
    }

    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    fn resize(&mut self, len: usize) {
        self.vectors.resize(len * self.dims, 0.0);
        self.edges.resize(len * MOST_EDGES, 0);
        self.degrees.resize(len, 0);
        self.present.resize(len, false);
        self.dirty.resize(len, false);
        self.seen.resize(len, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.present.len()
    }

    pub(super) fn vector(&self, slot: u32) -> &[f32] {
        &self.vectors[slot as usize * self.dims..][..self.dims]
    }

    pub(super) fn edges(&self, slot: u32) -> &[u32] {
        let slot = slot as usize;
        &self.edges[slot * MOST_EDGES..][..usize::from(self.degrees[slot])]
    }

    fn set_edges(&mut self, slot: u32, edges: &[u32]) {
        let slot = slot as usize;
        self.edges[slot * MOST_EDGES..][..edges.len()].copy_from_slice(edges);
        self.degrees[slot] = u8::try_from(edges.len()).expect("a node has at most 48 edges");
    }

    /// Nodes read through SQLite, and nodes found in memory.
    pub(super) fn reads_and_hits(&self) -> (u64, u64) {
        (self.reads, self.hits)
    }

    /// Slots whose edges are not in the table as they are here, in order.
    pub(super) fn dirty(&mut self) -> &[u32] {
        self.dirty_slots.sort_unstable();
        &self.dirty_slots
    }

    /// The table has all edges now.
    pub(super) fn set_clean(&mut self) {
        for slot in self.dirty_slots.drain(..) {
            self.dirty[slot as usize] = false;
        }
    }

    fn set_dirty(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.dirty[slot as usize], true) {
            self.dirty_slots.push(slot);
        }
    }

    /// Forgets every node whose edges are in the table.
    pub(super) fn forget(&mut self) {
        for (present, dirty) in self.present.iter_mut().zip(&self.dirty) {
            if *present && !dirty {
                *present = false;
                self.absent += 1;
            }
        }
    }

    /// Reads everything at once, in the order of the tables.
    pub(super) fn read_all(&mut self, connection: &Connection) -> Result<()> {
        let mut expected = 0;
        Table::Vector.scan(connection, |id, bytes| {
            expected += 1;
            if id != expected {
                return Err(Error::Damaged(format!("vector {id} stands where {expected} should")));
            }
            self.fill_vector((id - 1) as u32, bytes)
        })?;
        Table::Edge.scan(connection, |id, bytes| match u32::try_from(id - 1) {
            Ok(slot) if (slot as usize) < self.len() => self.fill_edges(slot, bytes),
            _ => Err(Error::Damaged(format!("there are edges of {id}, which is not there"))),
        })?;
        self.present.fill(true);
        self.absent = 0;
        Ok(())
    }

    /// Makes sure that a node is in memory.
    #[inline]
    pub(super) fn ensure(&mut self, slot: u32, connection: &Connection) -> Result<()> {
        if self.absent == 0 || self.present[slot as usize] {
            return Ok(());
        }
        self.read(slot, connection)
    }

    fn read(&mut self, slot: u32, connection: &Connection) -> Result<()> {
        let id = i64::from(slot) + 1;
        let missing = || Error::Damaged(format!("vector {id} is missing"));
        self.fill_vector(slot, &Table::Vector.read(connection, id)?.ok_or_else(missing)?)?;
        // Edges that are in the log only are not in the table yet.
        let edges = Table::Edge.read(connection, id)?.unwrap_or_default();
        self.fill_edges(slot, &edges)?;
        self.present[slot as usize] = true;
        self.absent -= 1;
        self.reads += 1;
        Ok(())
    }

    fn fill_vector(&mut self, slot: u32, bytes: &[u8]) -> Result<()> {
        let to = &mut self.vectors[slot as usize * self.dims..][..self.dims];
        let to: &mut [u8] = bytemuck::cast_slice_mut(to);
        if to.len() != bytes.len() {
            let (found, expected) = (bytes.len(), to.len());
            return Err(Error::Damaged(format!("vector {} has {found} bytes and not {expected}", slot + 1)));
        }
        to.copy_from_slice(bytes);
        Ok(())
    }

    fn fill_edges(&mut self, slot: u32, bytes: &[u8]) -> Result<()> {
        let ids = ids_from_bytes(bytes).unwrap_or_default();
        if 4 * ids.len() != bytes.len() || ids.len() > MOST_EDGES {
            return Err(Error::Damaged(format!("{} bytes are not valid edges of vector {}", bytes.len(), slot + 1)));
        }
        let slots = self.slots(&ids)?;
        self.set_edges(slot, &slots);
        Ok(())
    }

    /// The slots of ids that a file names.
    fn slots(&self, ids: &[u32]) -> Result<Vec<u32>> {
        let slot = |id: &u32| match id.checked_sub(1) {
            Some(slot) if (slot as usize) < self.len() => Ok(slot),
            _ => Err(Error::Damaged(format!("there is an edge to {id}, which is not there"))),
        };
        ids.iter().map(slot).collect()
    }

    /// Adds the node `slot`, which is the next.
    pub(super) fn push(&mut self, vector: &[f32]) -> u32 {
        let slot = self.len();
        self.resize(slot + 1);
        self.vectors[slot * self.dims..].copy_from_slice(vector);
        self.present[slot] = true;
        slot as u32
    }

    /// Does what a record of the log says about the node `slot` and others.
    pub(super) fn replay(&mut self, slot: u32, record: &Record, connection: &Connection) -> Result<()> {
        let too_many = || Error::Damaged(format!("the log gives a vector more than {MOST_EDGES} edges"));
        if record.forward.len() > MOST_EDGES {
            return Err(too_many());
        }
        self.ensure(slot, connection)?;
        let forward = self.slots(&record.forward)?;
        self.set_edges(slot, &forward);
        self.set_dirty(slot);
        for change in &record.changes {
            let (id, edges) = match change {
                Change::Append(id) => (id, None),
                Change::Replace(id, edges) => (id, Some(self.slots(edges)?)),
            };
            let node = self.slots(&[*id])?[0];
            self.ensure(node, connection)?;
            let edges = edges.unwrap_or_else(|| [self.edges(node), &[slot]].concat());
            if edges.len() > MOST_EDGES {
                return Err(too_many());
            }
            self.set_edges(node, &edges);
            self.set_dirty(node);
        }
        Ok(())
    }

    /// Gives the node `new` its edges.
    pub(super) fn connect(&mut self, new: u32, forward: &[u32]) {
        self.set_edges(new, forward);
        self.set_dirty(new);
    }

    /// Gives `node` an edge to `new`, and prunes if that is one too many.
    pub(super) fn connect_back(
        &mut self,
        node: u32,
        new: u32,
        pruned: usize,
        connection: &Connection,
        meter: &mut Meter,
    ) -> Result<Change> {
        self.set_dirty(node);
        let degree = usize::from(self.degrees[node as usize]);
        if degree < MOST_EDGES {
            self.edges[node as usize * MOST_EDGES + degree] = new;
            self.degrees[node as usize] += 1;
            return Ok(Change::Append(node + 1));
        }
        let all = [self.edges(node), &[new]].concat();
        let mut candidates = Vec::with_capacity(all.len());
        for slot in all {
            self.ensure(slot, connection)?;
            candidates.push(Candidate { distance: meter.squared(self.vector(node), self.vector(slot)), slot });
        }
        candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let kept = select(&candidates, pruned, |slot| self.vector(slot), meter);
        self.set_edges(node, &kept);
        Ok(Change::Replace(node + 1, kept.iter().map(|slot| slot + 1).collect()))
    }

    /// Walks from `start` towards `target`; returns what was expanded, in that order. What was found is then in the beam.
    pub(super) fn walk(
        &mut self,
        start: u32,
        target: &[f32],
        beam: &mut Beam,
        connection: &Connection,
        meter: &mut Meter,
    ) -> Result<Vec<Candidate>> {
        beam.clear();
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.seen.fill(0);
            self.walk = 1;
        }
        let reads = self.reads;
        self.ensure(start, connection)?;
        self.seen[start as usize] = self.walk;
        beam.offer(meter.squared(self.vector(start), target), u64::from(start));
        let mut expanded = Vec::new();
        let mut fresh = Vec::with_capacity(MOST_EDGES);
        let mut touched = 1;
        while let Some(candidate) = beam.expand() {
            let slot = candidate.id as u32;
            expanded.push(Candidate { distance: candidate.distance, slot });
            // First all that are new, so that their vectors are on the way before the first is needed.
            fresh.clear();
            for index in 0..usize::from(self.degrees[slot as usize]) {
                let neighbour = self.edges[slot as usize * MOST_EDGES + index];
                if std::mem::replace(&mut self.seen[neighbour as usize], self.walk) != self.walk {
                    fresh.push(neighbour);
                    prefetch(self.vector(neighbour));
                }
            }
            touched += fresh.len() as u64;
            for &neighbour in &fresh {
                self.ensure(neighbour, connection)?;
                beam.offer(meter.squared(self.vector(neighbour), target), u64::from(neighbour));
            }
        }
        self.hits += touched - (self.reads - reads);
        Ok(expanded)
    }
}

/// Asks for the cache lines of `vector`.
#[inline(always)]
fn prefetch(vector: &[f32]) {
    for line in vector.chunks(16) {
        assay_harness::prefetch::line(line.as_ptr());
    }
}
