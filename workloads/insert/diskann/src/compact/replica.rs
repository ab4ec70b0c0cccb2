//! A copy of the graph that other threads search while the index is written.
//!
//! The index belongs to one thread. Its copy follows the commits. Each commit publishes its changes, and the next
//! search applies them before it walks, or the commit itself if no search is running. Inserts never wait for a search.
//! A search sees all commits before its start, each completely, and no uncommitted change. The copy acts as a snapshot
//! of the file without its reads, and needs the memory of the graph once more for any number of searching threads.

use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use super::bounded::Bounded;
use super::deleted::Deleted;
use super::entries::entries;
use super::nodes::{Nodes, Question, Seen, Walked, closest_found, search};
use super::whole::{Still, Whole};
use crate::distance::{Distance, Meter};
use crate::error::Result;
use crate::index::Searcher;

/// Nodes that can be copied.
pub(super) trait Replicated {
    /// All of them, if they always lie in memory.
    fn whole(&self) -> Option<&Whole>;
}

impl Replicated for Whole {
    fn whole(&self) -> Option<&Whole> {
        self.keeps_all().then_some(self)
    }
}

impl Replicated for Bounded {
    fn whole(&self) -> Option<&Whole> {
        None
    }
}

/// Changes of a commit.
#[derive(Debug)]
struct Commit {
    number: u64,
    /// New vectors, one after the other.
    vectors: Vec<f32>,
    /// Nodes with other edges than before.
    edges: Vec<(u32, Box<[u32]>)>,
    deleted: Vec<u32>,
    gone: Vec<u32>,
    medoid: Option<u32>,
}

/// The graph after some commit.
#[derive(Debug)]
struct Graph {
    nodes: Whole,
    deleted: Deleted,
    medoid: Option<u32>,
    commits: u64,
}

impl Graph {
    fn apply(&mut self, commit: Commit) {
        for vector in commit.vectors.chunks_exact(self.nodes.dims()) {
            self.nodes.append(vector);
        }
        for (slot, edges) in commit.edges {
            self.nodes.fill_edges(slot, &edges);
        }
        commit.deleted.into_iter().for_each(|slot| self.deleted.insert(slot));
        for slot in commit.gone {
            self.nodes.fill_edges(slot, &[]);
            self.deleted.set_one_gone(slot);
        }
        (self.medoid, self.commits) = (commit.medoid, commit.number);
    }
}

/// The graph that is searched, and the commits that it does not have yet, in order.
#[derive(Debug)]
struct Replica {
    graph: RwLock<Graph>,
    news: Mutex<Vec<Commit>>,
}

/// A panic while a lock is held leaves an inconsistent graph.
const POISONED: &str = "no thread panics while it holds the graph";

impl Replica {
    fn news(&self) -> MutexGuard<'_, Vec<Commit>> {
        self.news.lock().expect(POISONED)
    }

    /// Applies published commits. Only the lock holder takes commits, so that they stay in order.
    fn take_over(&self, graph: &mut Graph) {
        let news = std::mem::take(&mut *self.news());
        news.into_iter().for_each(|commit| graph.apply(commit));
    }

    /// Publishes a commit without waiting.
    fn publish(&self, commit: Commit) {
        self.news().push(commit);
        if let Ok(mut graph) = self.graph.try_write() {
            self.take_over(&mut graph);
        }
    }

    /// The graph with all that was committed so far.
    fn graph(&self) -> RwLockReadGuard<'_, Graph> {
        let is_behind = !self.news().is_empty();
        if is_behind {
            self.take_over(&mut self.graph.write().expect(POISONED));
        }
        self.graph.read().expect(POISONED)
    }
}

/// Changes of the current transaction, for the copy.
#[derive(Debug)]
pub(super) struct Journal {
    replica: Arc<Replica>,
    /// Number of vectors in the copy after all published commits.
    len: usize,
    /// Nodes that have other edges.
    pub(super) changed: Vec<u32>,
    /// Vectors that were deleted.
    pub(super) deleted: Vec<u32>,
    /// Deleted vectors that are out of the graph.
    pub(super) gone: Vec<u32>,
}

impl Journal {
    /// Creates the journal of an index with the given initial copy.
    pub(super) fn new(nodes: Whole, deleted: Deleted, medoid: Option<u32>, commits: u64) -> Self {
        let len = nodes.len();
        let graph = RwLock::new(Graph { nodes, deleted, medoid, commits });
        let replica = Arc::new(Replica { graph, news: Mutex::new(Vec::new()) });
        Self { replica, len, changed: Vec::new(), deleted: Vec::new(), gone: Vec::new() }
    }

    /// Returns a searcher of the copy.
    pub(super) fn searcher(&self, distance: Distance) -> Reader {
        Reader { replica: Arc::clone(&self.replica), seen: Seen::default(), meter: Meter::new(distance), commits: 0 }
    }

    /// The transaction is committed; `nodes` and `medoid` are the new state.
    pub(super) fn publish(&mut self, nodes: &Whole, medoid: Option<u32>, number: u64) {
        self.changed.sort_unstable();
        self.changed.dedup();
        let vectors = nodes.vectors(self.len, nodes.len() - self.len).to_vec();
        let edges = self.changed.drain(..).map(|slot| (slot, nodes.edges(slot).into())).collect();
        let (deleted, gone) = (std::mem::take(&mut self.deleted), std::mem::take(&mut self.gone));
        self.len = nodes.len();
        self.replica.publish(Commit { number, vectors, edges, deleted, gone, medoid });
    }

    /// The transaction is rolled back.
    pub(super) fn forget(&mut self) {
        self.changed.clear();
        self.deleted.clear();
        self.gone.clear();
    }

    /// Bytes of memory of the copy.
    pub(super) fn memory_bytes(&self) -> u64 {
        let graph = self.replica.graph();
        graph.nodes.memory_bytes() + graph.deleted.memory_bytes()
    }
}

/// Searches the copy.
#[derive(Debug)]
pub(super) struct Reader {
    replica: Arc<Replica>,
    seen: Seen,
    meter: Meter,
    commits: u64,
}

impl Searcher for Reader {
    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>> {
        let graph = self.replica.graph();
        self.commits = graph.commits;
        let starts = entries(graph.medoid, graph.nodes.len(), &graph.deleted);
        self.seen.resize(graph.nodes.len());
        let (question, mut nodes) = (Question { query, starts: &starts, list }, Still(&graph.nodes));
        let beam = search(&mut nodes, question, &graph.deleted, &mut self.seen, &(), &mut self.meter)?;
        Ok(closest_found(&beam, k, &graph.deleted))
    }

    fn commits(&self) -> u64 {
        self.commits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::NodeCache;

    #[test]
    fn commit_does_not_wait_for_searches_and_the_next_search_applies_it() {
        let mut nodes = Whole::new(1, NodeCache::PerBatch);
        nodes.append(&[1.0]);
        let mut journal = Journal::new(nodes.clone(), Deleted::default(), None, 0);
        let replica = Arc::clone(&journal.replica);
        let mut commit = |number: u32| {
            let slot = nodes.append(&[number as f32]);
            nodes.fill_edges(slot, &[slot - 1]);
            nodes.fill_edges(slot - 1, &[slot]);
            journal.changed.extend([slot, slot - 1]);
            journal.publish(&nodes, None, number.into());
        };
        commit(2);
        let waiting = replica.news().len();
        let searched = replica.graph();
        assert_eq!((waiting, searched.commits), (0, 2), "no search has run");
        commit(3);
        commit(4);
        assert_eq!((replica.news().len(), searched.commits, searched.nodes.len()), (2, 2, 2));
        drop(searched);
        let searched = replica.graph();
        assert_eq!((replica.news().len(), searched.commits, searched.nodes.len()), (0, 4, 4));
        assert_eq!([0, 1, 2, 3].map(|slot| searched.nodes.edges(slot)[0]), [1, 2, 3, 2]);
    }
}
