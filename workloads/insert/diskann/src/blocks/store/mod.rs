//! Where blocks lie: in a table of SQLite, or in memory while an index is prepared.

mod memory;
mod sqlite;

pub use memory::Memory;
pub use sqlite::Sqlite;

use super::layout::{Block, Layout};
use crate::error::Result;

/// A node in the hands of an insert or a walk.
#[derive(Debug)]
pub struct Node<H> {
    /// Which one.
    pub id: u64,
    /// Its contents.
    pub block: Block,
    /// Data that the store needs to write it back.
    pub handle: H,
}

/// Where blocks lie.
pub trait Store {
    /// Data needed to write a node back.
    type Handle;

    /// The sizes of its blocks.
    fn layout(&self) -> Layout;

    /// Checks a node out for reading, or for writing if `to_write`. A node must not be checked out twice.
    ///
    /// # Errors
    ///
    /// If it does not exist or is not a block.
    fn open(&mut self, id: u64, to_write: bool) -> Result<Node<Self::Handle>>;

    /// Makes a node. It must be [written](Self::write) before it is closed.
    ///
    /// # Errors
    ///
    /// When it is there already, or the store is full.
    fn create(&mut self, id: u64, vector: &[f32]) -> Result<Node<Self::Handle>>;

    /// Writes a node that was opened for it.
    ///
    /// # Errors
    ///
    /// When the store refuses.
    fn write(&mut self, node: &mut Node<Self::Handle>) -> Result<()>;

    /// Takes a node back.
    fn close(&mut self, node: Node<Self::Handle>);
}
