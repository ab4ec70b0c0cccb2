//! The document's index: a table with one [block](layout) per vector.
//!
//! A block holds copies of its neighbours' vectors, so that a walk needs one read per node it expands. The price is size: 16 KiB for a
//! vector of 512 bytes, and a whole block written whenever an edge changes.

pub mod deferred;
pub mod edges;
mod index;
pub mod insert;
pub mod layout;
mod make;
pub mod store;
pub mod verify;

pub use index::Blocks;
pub use make::make;

/// The table of blocks.
pub(crate) const TABLE: &str = "vectors_shadow";
/// Its column of blocks.
pub(crate) const COLUMN: &str = "data";
/// The table of whole numbers that describe the index.
pub(crate) const METADATA: &str = "vectors_metadata";
