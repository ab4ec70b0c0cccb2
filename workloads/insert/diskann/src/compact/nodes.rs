//! Interface of nodes for walks and inserts, and the walk itself.
//!
//! A node is identified by its slot: the vector with id 1 is in slot 0.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::deleted::Deleted;
use super::prune::{Candidate, select};
use super::record::{Change, Record};
use super::{MOST_EDGES, PRUNED_EDGES};
use crate::beam::Beam;
use crate::distance::Meter;
use crate::error::{Error, Result};

/// Interface of nodes for a walk.
pub(super) trait Walked {
    /// A vector that is searched, in the form that nodes are compared with.
    type Target;
    /// Where that is read which is not in memory.
    type Source: ?Sized;

    /// How many nodes there are.
    fn len(&self) -> usize;
    /// `vector` as a target.
    fn target(&self, vector: &[f32]) -> Self::Target;
    /// How far a node lies from a target. The node was [ensured](Self::ensure).
    fn squared_to(&self, slot: u32, target: &Self::Target, meter: &mut Meter) -> f32;
    /// Prefetches the data for a comparison with a node.
    fn prefetch(&self, slot: u32);
    /// Makes sure that a node can be compared.
    fn ensure(&mut self, slot: u32, source: &Self::Source) -> Result<()>;
    /// Copies the edges of a node that was [ensured](Self::ensure) into `edges`.
    fn copy_edges(&mut self, slot: u32, edges: &mut Vec<u32>, source: &Self::Source) -> Result<()>;
}

/// The nodes of an index, as far as they lie in memory.
pub(super) trait Nodes: Walked<Source = Connection> {
    /// Coordinates per vector.
    fn dims(&self) -> usize;
    /// Loads the tables of `len` vectors without removed ones; the log is not replayed.
    fn load(&mut self, len: usize, deleted: &Deleted, connection: &Connection) -> Result<()>;
    /// Clears data that must not be reused by the next insert or query.
    fn begin(&mut self) {}

    /// How far two nodes lie from each other. Both were [ensured](Walked::ensure).
    fn squared_between(&self, a: u32, b: u32, meter: &mut Meter) -> f32;
    /// Gives a node other edges than its row has.
    fn set_edges(&mut self, slot: u32, edges: &[u32]);
    /// Adds the next node.
    fn push(&mut self, vector: &[f32]) -> Result<u32>;
    /// Forgets the edges of a node that is gone.
    fn remove(&mut self, slot: u32);

    /// Nodes with unwritten edges, in order.
    fn dirty(&self) -> Vec<u32>;
    /// The rows have all edges now.
    fn set_clean(&mut self);
    /// Whether unwritten edges should be folded now.
    fn is_crowded(&self) -> bool {
        false
    }
    /// The index has doubled since it was last told.
    fn doubled(&mut self, _: &Deleted, _: &Connection) -> Result<()> {
        Ok(())
    }

    /// Which nodes a walk has seen.
    fn seen(&mut self) -> &mut Seen;
    /// Nodes read through SQLite, and nodes found in memory.
    fn reads_and_hits(&self) -> (u64, u64);
    /// Bytes of memory.
    fn memory_bytes(&self) -> u64;

    /// The ids of the `k` nodes of `beam` that lie closest to `query` and were not deleted, the closest first.
    fn closest(
        &mut self,
        query: &[f32],
        beam: &Beam<u32>,
        k: usize,
        deleted: &Deleted,
        connection: &Connection,
        meter: &mut Meter,
    ) -> Result<Vec<u64>>;
}

/// In which walk each node was last seen: emptied in no time.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    walks: Vec<u32>,
    walk: u32,
}

impl Seen {
    /// Room for `len` nodes.
    pub(super) fn resize(&mut self, len: usize) {
        reserve(&mut self.walks, len);
        self.walks.resize(len, 0);
    }

    fn begin(&mut self) {
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.walks.fill(0);
            self.walk = 1;
        }
    }

    /// Adds a node; says whether it is new.
    fn insert(&mut self, slot: u32) -> bool {
        std::mem::replace(&mut self.walks[slot as usize], self.walk) != self.walk
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (size_of::<u32>() * self.walks.capacity()) as u64
    }
}

/// Makes room for `len` in all, and for a sixteenth more where it must grow: a vector that doubles may take half of a memory in vain.
pub(super) fn reserve<T>(vector: &mut Vec<T>, len: usize) {
    if vector.capacity() < len {
        vector.reserve_exact(len + len / 16 - vector.len());
    }
}

/// The slots of ids that a file names.
pub(super) fn slots(ids: &[u32], len: usize) -> Result<Vec<u32>> {
    let slot = |id: &u32| match id.checked_sub(1) {
        Some(slot) if (slot as usize) < len => Ok(slot),
        _ => Err(Error::Damaged(format!("there is an edge to {id}, which is not there"))),
    };
    ids.iter().map(slot).collect()
}

/// Walks from all `starts` towards `target`; returns the expanded nodes in order. The candidates are then in the beam.
pub(super) fn walk<W: Walked>(
    nodes: &mut W,
    starts: &[u32],
    target: &W::Target,
    beam: &mut Beam<u32>,
    seen: &mut Seen,
    source: &W::Source,
    meter: &mut Meter,
) -> Result<Vec<Candidate>> {
    beam.clear();
    seen.begin();
    let mut expanded = Vec::new();
    let (mut next, mut fresh) = (starts.to_vec(), Vec::with_capacity(MOST_EDGES));
    loop {
        // Collects all new neighbours first, so that their data is prefetched before the first comparison.
        fresh.clear();
        for &node in &next {
            if seen.insert(node) {
                fresh.push(node);
                nodes.prefetch(node);
            }
        }
        for &node in &fresh {
            nodes.ensure(node, source)?;
            beam.offer(nodes.squared_to(node, target, meter), node);
        }
        let Some(candidate) = beam.expand() else { return Ok(expanded) };
        expanded.push(Candidate { distance: candidate.distance(), slot: candidate.id });
        nodes.copy_edges(candidate.id, &mut next, source)?;
    }
}

/// A search: target, starts and list size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) query: &'a [f32],
    pub(super) starts: &'a [u32],
    pub(super) list: usize,
}

/// Walks until the list has found as many nodes as it should that were not deleted, or all there are. Deleted ones are passed by, but take
/// no place in it: the list is longer by as many as are to be expected, and longer again where that was too few.
pub(super) fn search<W: Walked>(
    nodes: &mut W,
    question: Question<'_>,
    deleted: &Deleted,
    seen: &mut Seen,
    source: &W::Source,
    meter: &mut Meter,
) -> Result<Beam<u32>> {
    let Question { query, starts, list } = question;
    let (waiting, there) = (deleted.waiting().len(), nodes.len() - deleted.count() as usize);
    let target = nodes.target(query);
    let longest = list + waiting;
    let mut length = longest.min(list + (2 * list * waiting).div_ceil(there.max(1)));
    loop {
        let mut beam = Beam::new(length);
        walk(nodes, starts, &target, &mut beam, seen, source, meter)?;
        let found = beam.candidates().iter().filter(|candidate| !deleted.contains(candidate.id)).count();
        if found >= list.min(there) || length == longest {
            return Ok(beam);
        }
        length = longest.min(2 * length);
    }
}

/// The ids of the `k` closest that a walk over the vectors themselves found and that were not deleted.
pub(super) fn closest_found(beam: &Beam<u32>, k: usize, deleted: &Deleted) -> Vec<u64> {
    let found = beam.candidates().iter().filter(|candidate| !deleted.contains(candidate.id));
    found.take(k).map(|candidate| u64::from(candidate.id) + 1).collect()
}

/// Gives `node` an edge to `new`, and prunes if that is one too many.
pub(super) fn connect_back<N: Nodes>(
    nodes: &mut N,
    node: u32,
    new: u32,
    connection: &Connection,
    meter: &mut Meter,
) -> Result<Change> {
    let mut edges = Vec::with_capacity(MOST_EDGES + 1);
    nodes.copy_edges(node, &mut edges, connection)?;
    edges.push(new);
    if edges.len() <= MOST_EDGES {
        nodes.set_edges(node, &edges);
        return Ok(Change::Append(node + 1));
    }
    let mut candidates = Vec::with_capacity(edges.len());
    for slot in edges {
        nodes.ensure(slot, connection)?;
        candidates.push(Candidate { distance: nodes.squared_between(node, slot, meter), slot });
    }
    candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    let kept = select(&candidates, PRUNED_EDGES, |a, b| nodes.squared_between(a, b, meter));
    nodes.set_edges(node, &kept);
    Ok(Change::Replace(node + 1, kept.iter().map(|slot| slot + 1).collect()))
}

/// Replays row `id` of the log.
pub(super) fn replay<N: Nodes>(nodes: &mut N, id: i64, bytes: &[u8], connection: &Connection) -> Result<()> {
    let len = nodes.len();
    let record = Record::from_bytes(bytes).ok_or_else(|| Error::Damaged(format!("invalid record {id} of the log")))?;
    let slot = u32::try_from(id - 1).ok().filter(|slot| (*slot as usize) < len);
    let slot = slot.ok_or_else(|| Error::Damaged(format!("the log has a record of {id}, which is not there")))?;
    let too_many = || Error::Damaged(format!("the log gives a vector more than {MOST_EDGES} edges"));
    if record.forward.len() > MOST_EDGES {
        return Err(too_many());
    }
    nodes.ensure(slot, connection)?;
    let forward = slots(&record.forward, len)?;
    nodes.set_edges(slot, &forward);
    for change in &record.changes {
        let (id, edges) = match change {
            Change::Append(id) => (id, None),
            Change::Replace(id, edges) => (id, Some(slots(edges, len)?)),
        };
        let node = slots(&[*id], len)?[0];
        nodes.ensure(node, connection)?;
        let edges = match edges {
            Some(edges) => edges,
            None => {
                let mut edges = Vec::with_capacity(MOST_EDGES + 1);
                nodes.copy_edges(node, &mut edges, connection)?;
                edges.push(slot);
                edges
            }
        };
        if edges.len() > MOST_EDGES {
            return Err(too_many());
        }
        nodes.set_edges(node, &edges);
    }
    Ok(())
}

/// Takes the edges of `slot` that lead to deleted nodes away: it gets the edges that those had instead, pruned. Where a deleted
/// node leads to deleted ones only, theirs are taken. A node that would be left without any edge gets one to `start`, and back. Returns
/// the nodes whose edges have changed.
///
/// Algorithm 4 of Singh et al., "FreshDiskANN: A Fast and Accurate Graph-Based ANN Index for Streaming Similarity Search",
/// arXiv:2105.09613; it looks no further than the edges of a deleted node.
pub(super) fn bypass<N: Nodes>(
    nodes: &mut N,
    slot: u32,
    deleted: &Deleted,
    start: Option<u32>,
    connection: &Connection,
    meter: &mut Meter,
) -> Result<Vec<u32>> {
    let (mut edges, mut further) = (Vec::with_capacity(MOST_EDGES), Vec::with_capacity(MOST_EDGES));
    nodes.ensure(slot, connection)?;
    nodes.copy_edges(slot, &mut edges, connection)?;
    if !edges.iter().any(|edge| deleted.contains(*edge)) {
        return Ok(Vec::new());
    }
    let (mut reached, mut passed) = (BTreeSet::new(), BTreeSet::new());
    while let Some(edge) = edges.pop() {
        if !deleted.contains(edge) {
            reached.insert(edge);
        } else if passed.insert(edge) {
            nodes.ensure(edge, connection)?;
            nodes.copy_edges(edge, &mut further, connection)?;
            let there = further.iter().copied().filter(|further| !deleted.contains(*further) && *further != slot);
            let before = edges.len();
            edges.extend(there);
            if edges.len() == before {
                edges.append(&mut further);
            }
        }
    }
    reached.remove(&slot);
    let mut candidates = Vec::with_capacity(reached.len());
    for edge in reached {
        nodes.ensure(edge, connection)?;
        candidates.push(Candidate { distance: nodes.squared_between(slot, edge, meter), slot: edge });
    }
    candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    let mut kept = select(&candidates, PRUNED_EDGES, |a, b| nodes.squared_between(a, b, meter));
    let lost = start.filter(|start| kept.is_empty() && *start != slot);
    kept.extend(lost);
    nodes.set_edges(slot, &kept);
    let mut changed = vec![slot];
    if let Some(start) = lost {
        nodes.ensure(start, connection)?;
        connect_back(nodes, start, slot, connection, meter)?;
        changed.push(start);
    }
    Ok(changed)
}
