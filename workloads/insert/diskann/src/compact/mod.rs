//! Our index: vectors, edges and recent changes in separate tables.
//!
//! | table | a row is |
//! |---|---|
//! | `vector` | one vector, written once |
//! | `edge` | the neighbours of one vector, as ids |
//! | `log` | one insert: the edges of the new vector, and its changes to the edges of others |
//! | `deleted` | one deleted vector; until consolidation its other rows remain |
//! | `setting` | an integer property of the index |
//!
//! An insert appends a row to `vector` and one to `log` and commits: two or three pages instead of a hundred. Opening
//! reads the edges and replays the log. When the log reaches its limit, an insert folds it: it writes all changed rows
//! of `edge` in id order and empties the log, in its own transaction, so that each row is written once for all the
//! inserts that changed it. The graph is in memory: a vector and at most 48 ids for each node, 700 bytes where the
//! document's index has a block of 16 KiB. With a memory budget only a code of each vector is, one byte per coordinate,
//! with a cache of edges; the rest stays on the disk.
//!
//! A walk begins at the vector closest to the mean and at landmarks from the whole index (`entries.rs`).
//!
//! A deleted vector stays in the graph for walks, until many are removed at once (`deleted.rs`). Other threads search a
//! copy of the graph that follows the commits (`replica.rs`).

mod bounded;
mod codes;
mod coordinates;
mod deleted;
mod edge_cache;
mod entries;
mod index;
mod make;
mod nodes;
pub mod prune;
pub mod record;
mod replica;
mod table;
pub mod verify;
mod whole;

pub use index::open;
pub use make::make;
pub use table::create;

/// The table of whole numbers that describe the index.
pub(crate) const SETTING: &str = "setting";

/// Edges that a node may have. An edge costs four bytes here, where the document's block has no room for more than thirty.
pub const MOST_EDGES: usize = 48;
/// Edges that a node has after pruning, so that the next few need none.
pub const PRUNED_EDGES: usize = 40;
