//! The set of deleted vectors.
//!
//! As in FreshDiskANN (Singh et al., arXiv:2105.09613), a deleted vector stays in the graph for walks and is excluded
//! from their results. Consolidation removes many at once: every node with an edge to a deleted one gets the latter's
//! edges, pruned as usual (algorithm 4 there). Then their rows are deleted. A row in `deleted` remains for each, so
//! that ids are not reused.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::table::Table;
use crate::error::{Error, Result};

/// The deleted vectors, by slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Deleted {
    bits: Vec<u64>,
    count: u64,
    /// Those that are still in the graph.
    waiting: BTreeSet<u32>,
}

impl Deleted {
    /// Loads the table.
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut deleted = Self::default();
        Table::Deleted.scan(connection, |id, bytes| {
            let slot = u32::try_from(id - 1).ok().filter(|_| bytes.is_empty());
            let slot = slot.ok_or_else(|| Error::Damaged(format!("invalid row {id} of the deleted vectors")))?;
            deleted.insert(slot);
            Ok(())
        })?;
        deleted.waiting.clear();
        let mut rows = connection.prepare("SELECT id FROM vector WHERE id IN (SELECT id FROM deleted)")?;
        for id in rows.query_map([], |row| row.get::<_, i64>(0))? {
            deleted.waiting.insert((id? - 1) as u32);
        }
        Ok(deleted)
    }

    /// Adds one that is still in the graph.
    pub(super) fn insert(&mut self, slot: u32) {
        let word = slot as usize / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (slot % 64);
        self.count += 1;
        self.waiting.insert(slot);
    }

    /// Whether it was deleted.
    #[inline]
    pub(super) fn contains(&self, slot: u32) -> bool {
        self.bits.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Whether it was deleted and is no longer in the graph.
    pub(super) fn is_gone(&self, slot: u32) -> bool {
        self.contains(slot) && !self.waiting.contains(&slot)
    }

    /// Those that are still in the graph.
    pub(super) fn waiting(&self) -> &BTreeSet<u32> {
        &self.waiting
    }

    /// None is in the graph any more. Returns those that were.
    pub(super) fn set_gone(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.waiting)
    }

    /// This one is not in the graph any more.
    pub(super) fn set_one_gone(&mut self, slot: u32) {
        self.waiting.remove(&slot);
    }

    /// How many were deleted, ever.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        // A node of the tree holds eleven, and is half full or more.
        (size_of::<u64>() * self.bits.capacity() + 2 * size_of::<u32>() * self.waiting.len()) as u64
    }

    /// The first slot from `from` on that is not gone: where the next row of a scan should stand.
    pub(super) fn next_slot(&self, from: u32) -> u32 {
        let mut slot = from;
        while self.is_gone(slot) {
            slot += 1;
        }
        slot
    }
}
