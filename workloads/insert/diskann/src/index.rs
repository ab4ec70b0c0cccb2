//! Common interface of both indexes.

use assay_harness::Phases;

use crate::distance::Meter;
use crate::error::Result;

/// Cache across inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeCache {
    /// Nothing, as in the document.
    None,
    /// Every node that was read.
    PerBatch,
}

assay_harness::choices!(NodeCache { "none" => None, "per-batch" => PerBatch });

/// When the neighbours of a new vector get their edges to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackEdges {
    /// Each for itself, at once, as in the document.
    Eager,
    /// Collected. The document's index adds them at the end of the transaction, once per neighbour; ours writes them into the insert's
    /// one log record, and into the neighbours' rows when the log is folded.
    Deferred,
}

assay_harness::choices!(BackEdges { "eager" => Eager, "deferred" => Deferred });

/// Work counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Vectors inserted.
    pub inserts: u64,
    /// Nodes that the walks expanded.
    pub visited: u64,
    /// Nodes read through SQLite.
    pub node_reads: u64,
    /// Nodes found in memory.
    pub cache_hits: u64,
    /// Times that a neighbour was asked to take an edge back.
    pub back_edges_proposed: u64,
    /// Times that it did.
    pub back_edges_accepted: u64,
    /// Neighbours written: blobs, or rows of edges.
    pub node_writes: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Times that a log was folded into the rows of edges.
    pub folds: u64,
    /// Vectors deleted.
    pub deletes: u64,
    /// Times that deleted vectors were taken out of the graph.
    pub consolidations: u64,
}

impl Work {
    /// Difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            inserts: self.inserts - earlier.inserts,
            visited: self.visited - earlier.visited,
            node_reads: self.node_reads - earlier.node_reads,
            cache_hits: self.cache_hits - earlier.cache_hits,
            back_edges_proposed: self.back_edges_proposed - earlier.back_edges_proposed,
            back_edges_accepted: self.back_edges_accepted - earlier.back_edges_accepted,
            node_writes: self.node_writes - earlier.node_writes,
            commits: self.commits - earlier.commits,
            folds: self.folds - earlier.folds,
            deletes: self.deletes - earlier.deletes,
            consolidations: self.consolidations - earlier.consolidations,
        }
    }
}

/// A vector that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its id, from one.
    pub id: u64,
    /// Its coordinates.
    pub vector: Vec<f32>,
}

/// The names of an insert's phases, in order: the document's. Then those of a delete.
pub mod phase {
    /// Finding where the walk begins.
    pub const RANDOM_START: &str = "randomStart";
    /// Opening the transaction.
    pub const SAVEPOINT: &str = "savepoint";
    /// The walk.
    pub const SEARCH: &str = "search";
    /// Writing the vector's own row.
    pub const SHADOW_ROW: &str = "shadowRow";
    /// Choosing the vector's edges.
    pub const PHASE1: &str = "phase1";
    /// Its neighbours' edges.
    pub const PHASE2: &str = "phase2";
    /// Writing the vector's edges.
    pub const FLUSH_NEW: &str = "flushNew";
    /// Committing and tidying up.
    pub const CLEANUP: &str = "cleanup";
    /// Marking a vector as deleted.
    pub const MARK: &str = "mark";
    /// Taking deleted vectors out of the graph, when there are many.
    pub const CONSOLIDATE: &str = "consolidate";
}

/// An index that is open for inserts. Ids are given out one after the other, from one.
pub trait Index {
    /// Inserts `vector` and returns its id. It is committed with its transaction: on return, with one insert per
    /// transaction.
    ///
    /// # Errors
    ///
    /// If the vector has other dimensions than the index, or SQLite fails. Uncommitted changes are rolled back, and the
    /// index stays usable.
    fn insert(&mut self, vector: &[f32], phases: &mut Phases) -> Result<u64>;

    /// Commits pending changes.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    fn commit(&mut self, phases: &mut Phases) -> Result<()>;

    /// The ids of the `k` closest vectors found with a list of `list`, the closest first.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>>;

    /// Calls `each` for every stored vector, in the order of their ids, as the file has them.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    fn each_stored(&mut self, each: &mut dyn FnMut(Stored)) -> Result<()>;

    /// The last id that was given out: how many vectors were inserted, ever.
    fn last_id(&self) -> u64;

    /// How many vectors there are: without those that were deleted.
    fn live(&self) -> u64 {
        self.last_id()
    }

    /// The same index, if its vectors can be deleted and it can be searched while it is written.
    fn editable(&mut self) -> Option<&mut (dyn Editable + '_)> {
        None
    }

    /// Work done so far.
    fn work(&self) -> Work;

    /// The distance, with its count.
    fn meter(&self) -> Meter;

    /// Writes pending rows and commits.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    fn finish(&mut self) -> Result<()>;

    /// Bytes of memory that it holds between two inserts, without SQLite's own.
    fn memory_bytes(&self) -> u64;
}

/// An index whose vectors can be deleted and replaced, and that other threads can search meanwhile.
pub trait Editable: Index {
    /// Deletes the vector `id`; returns whether it existed. Searches exclude it from now on. It is committed with its
    /// transaction.
    ///
    /// # Errors
    ///
    /// If SQLite fails. Uncommitted changes are rolled back.
    fn delete(&mut self, id: u64, phases: &mut Phases) -> Result<bool>;

    /// Replaces the vector `id` by `vector`, in one transaction, and returns the new id. `None` if `id` does not exist,
    /// or the vector has other dimensions.
    ///
    /// # Errors
    ///
    /// If SQLite fails. Uncommitted changes are rolled back.
    fn update(&mut self, id: u64, vector: &[f32], phases: &mut Phases) -> Result<Option<u64>>;

    /// Removes deleted vectors from graph and file, and commits. Deletions trigger this automatically when there are
    /// many. Returns the number of removed vectors.
    ///
    /// # Errors
    ///
    /// If SQLite fails. Uncommitted changes are rolled back.
    fn consolidate(&mut self) -> Result<u64>;

    /// Returns a searcher for another thread, usable while this index is written. `None` if the graph is not completely
    /// in memory. Pending changes are committed first.
    ///
    /// # Errors
    ///
    /// If SQLite fails.
    fn searcher(&mut self) -> Result<Option<Box<dyn Searcher>>>;
}

/// Searches an index that another thread writes.
pub trait Searcher: Send {
    /// The ids of the `k` closest vectors found with a list of `list`, the closest first, among the vectors that are there after the last
    /// commit before it began. A walk begins at fixed vectors.
    ///
    /// # Errors
    ///
    /// When the graph is damaged.
    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>>;

    /// How many commits of the open index the last search had before it.
    fn commits(&self) -> u64;
}
