//! Our index: vectors, edges and what has just changed in tables of their own.
//!
//! | table | a row is |
//! |---|---|
//! | `vector` | one vector, written once |
//! | `edge` | the neighbours of one vector, as ids |
//! | `log` | one insert: the edges of the new vector, and what it changed in the edges of others |
//! | `deleted` | one vector that was deleted: of those that are still in the graph the other rows are there as well |
//! | `setting` | a whole number that describes the index |
//!
//! An insert adds a row to `vector` and one to `log`, both at the end of their tables, and commits: two or three pages instead of a
//! hundred. Opening reads the edges and replays the log. When the log has so many records, the insert that finds it so writes
//! all changed rows of `edge` in the order of their ids and empties the log, in its own transaction; so each row is written once for all
//! the inserts that changed it. The graph that is walked lies in memory: a vector and at most 48 ids for each node, 700 bytes where
//! the document's index has a block of 16 KiB. With a memory budget only a code of each vector does, one byte per coordinate, and the
//! edges of as many nodes as fit; the rest stays on the disk.
//!
//! A walk begins at the vector closest to the mean and at landmarks from all over the index (`entries.rs`).
//!
//! A deleted vector stays in the graph, for walks to pass by, until many wait there and are taken out at once (`deleted.rs`). Other
//! threads search a copy of the graph that follows what is committed (`replica.rs`).

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
