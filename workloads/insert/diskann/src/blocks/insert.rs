//! The walk, and the two phases of an insert that follow it.

use assay_harness::Phases;

use super::deferred::Deferred;
use super::edges;
use super::store::{Node, Store};
use crate::beam::{Beam, IdSet};
use crate::crash::{Crash, Moment};
use crate::distance::Meter;
use crate::error::Result;
use crate::index::{Work, phase};

/// Buffers of a walk, reused to avoid allocation.
#[derive(Debug)]
pub struct Walker {
    beam: Beam<u64>,
    seen: IdSet,
}

impl Walker {
    /// A walk with a list of `list` candidates.
    #[must_use]
    pub fn new(list: usize) -> Self {
        Self { beam: Beam::new(list), seen: IdSet::default() }
    }

    /// Walks from `start` towards `target` and returns every expanded node, the latest first. The candidates are then
    /// in [`found`](Self::found).
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn walk<S: Store>(
        &mut self,
        store: &mut S,
        start: u64,
        target: &[f32],
        to_write: bool,
        meter: &mut Meter,
    ) -> Result<Vec<Node<S::Handle>>> {
        self.beam.clear();
        self.seen.clear();
        self.seen.insert(start);
        let first = store.open(start, to_write)?;
        self.beam.offer(meter.squared(first.block.vector(), target), start);
        let mut first = Some(first);
        let mut visited = Vec::new();
        while let Some(candidate) = self.beam.expand() {
            // The start was read to know its distance.
            let node = match first.take() {
                Some(node) => node,
                None => store.open(candidate.id, to_write)?,
            };
            for index in 0..node.block.edges() {
                let edge = node.block.edge(index);
                if self.seen.insert(edge.id) {
                    self.beam.offer(meter.squared(node.block.edge_vector(index), target), edge.id);
                }
            }
            visited.push(node);
        }
        visited.reverse();
        Ok(visited)
    }

    /// The closest nodes of the last walk, the closest first.
    pub fn found(&self) -> impl Iterator<Item = u64> {
        self.beam.candidates().iter().map(|candidate| candidate.id)
    }
}

/// One insert, from the walk to the last write; the transaction around it is the caller's.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The id that it gets.
    pub id: u64,
    /// Its coordinates.
    pub vector: &'a [f32],
    /// Where the walk begins; nowhere in an empty index.
    pub start: Option<u64>,
    /// When to die, if at all.
    pub crash: Crash,
}

/// Carries an insert out.
///
/// # Errors
///
/// When the store refuses.
pub fn insert<S: Store>(
    insert: &Insert<'_>,
    store: &mut S,
    walker: &mut Walker,
    mut deferred: Option<&mut Deferred>,
    meter: &mut Meter,
    work: &mut Work,
    phases: &mut Phases,
) -> Result<()> {
    let Insert { id, vector, start, crash } = *insert;
    let slots = store.layout().slots();

    let walked = phases.time(phase::SEARCH, || match start {
        Some(start) => walker.walk(store, start, vector, true, meter),
        None => Ok(Vec::new()),
    });
    let mut visited = walked?;
    work.visited += visited.len() as u64;
    crash.here(id, Moment::Search);

    let mut new = phases.time(phase::SHADOW_ROW, || store.create(id, vector))?;
    crash.here(id, Moment::ShadowRow);

    phases.time(phase::PHASE1, || {
        for node in &visited {
            edges::connect(&mut new.block, node.id, node.block.vector(), slots, meter);
        }
    });
    crash.here(id, Moment::Phase1);

    let phase2 = || -> Result<()> {
        work.back_edges_proposed += visited.len() as u64;
        for node in &mut visited {
            if let Some(deferred) = &mut deferred {
                let wanted = edges::place(&node.block, id, vector, slots, meter).is_some();
                if !wanted || deferred.push(node.id, id, vector) {
                    continue;
                }
            }
            if edges::connect(&mut node.block, id, vector, slots, meter) {
                store.write(node)?;
                work.back_edges_accepted += 1;
                work.node_writes += 1;
            }
        }
        Ok(())
    };
    phases.time(phase::PHASE2, phase2)?;
    crash.here(id, Moment::Phase2);

    phases.time(phase::FLUSH_NEW, || store.write(&mut new))?;
    phases.time(phase::CLEANUP, || {
        visited.into_iter().chain([new]).for_each(|node| store.close(node));
    });
    crash.here(id, Moment::FlushNew);
    work.inserts += 1;
    Ok(())
}
