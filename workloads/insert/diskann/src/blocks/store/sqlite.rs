//! Blocks in a table, read and written as incremental blobs.

use std::collections::HashMap;

use rusqlite::blob::Blob;
use rusqlite::{Connection, ErrorCode, MAIN_DB};

use super::{Node, Store};
use crate::blocks::layout::{Block, Layout};
use crate::blocks::{COLUMN, TABLE};
use crate::error::{Error, Result};
use crate::index::NodeCache;

/// The table of blocks.
#[derive(Debug)]
pub struct Sqlite<'c> {
    connection: &'c Connection,
    layout: Layout,
    /// Cache across inserts; checked-out nodes are not in it.
    cache: Option<HashMap<u64, Block>>,
    reads: u64,
    hits: u64,
}

impl<'c> Sqlite<'c> {
    /// The blocks of `connection`.
    #[must_use]
    pub fn new(connection: &'c Connection, layout: Layout, cache: NodeCache) -> Self {
        let cache = (cache == NodeCache::PerBatch).then(HashMap::new);
        Self { connection, layout, cache, reads: 0, hits: 0 }
    }

    /// Where the blocks lie.
    #[must_use]
    pub fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// Nodes read through SQLite, and nodes found in memory.
    #[must_use]
    pub fn reads_and_hits(&self) -> (u64, u64) {
        (self.reads, self.hits)
    }

    /// Bytes of memory that the cache takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let node = size_of::<(u64, Block)>() + self.layout.bytes();
        self.cache.as_ref().map_or(0, |cache| (cache.len() * node) as u64)
    }

    /// Clears the cache, e.g. after a rollback of the file.
    pub fn forget(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.clear();
        }
    }

    fn blob(&self, id: u64, to_write: bool) -> Result<Blob<'c>> {
        let id = i64::try_from(id).map_err(|_| Error::Damaged(format!("invalid id {id}")))?;
        match self.connection.blob_open(MAIN_DB, TABLE, COLUMN, id, !to_write) {
            Ok(blob) => Ok(blob),
            // SQLite's word for a row that is not there.
            Err(rusqlite::Error::SqliteFailure(failure, Some(message)))
                if failure.code == ErrorCode::Unknown && message.contains("no such rowid") =>
            {
                Err(Error::Damaged(format!("node {id} is missing")))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl<'c> Store for Sqlite<'c> {
    /// The handle stays open for as long as the node is out, as in the document. A node from memory has none until it is written.
    type Handle = Option<Blob<'c>>;

    fn layout(&self) -> Layout {
        self.layout
    }

    fn open(&mut self, id: u64, to_write: bool) -> Result<Node<Self::Handle>> {
        if let Some(block) = self.cache.as_mut().and_then(|cache| cache.remove(&id)) {
            self.hits += 1;
            return Ok(Node { id, block, handle: None });
        }
        self.reads += 1;
        let handle = self.blob(id, to_write)?;
        if handle.len() != self.layout.bytes() {
            let (found, expected) = (handle.len(), self.layout.bytes());
            return Err(Error::Damaged(format!("node {id} has {found} bytes and not {expected}")));
        }
        let mut block = Block::zeroed(self.layout);
        handle.read_at_exact(block.bytes_mut(), 0)?;
        if block.id() != id || !block.is_sound() {
            let (says, edges) = (block.id(), block.edges());
            return Err(Error::Damaged(format!("the id in node {id} is {says}, with {edges} edges")));
        }
        Ok(Node { id, block, handle: Some(handle) })
    }

    fn create(&mut self, id: u64, vector: &[f32]) -> Result<Node<Self::Handle>> {
        let mut insert =
            self.connection.prepare_cached("INSERT INTO vectors_shadow(id, data) VALUES(?1, zeroblob(?2))")?;
        insert.execute([id.cast_signed(), self.layout.bytes() as i64])?;
        // The document reads the zeroes back before it fills them in.
        let handle = self.blob(id, true)?;
        let mut block = Block::zeroed(self.layout);
        handle.read_at_exact(block.bytes_mut(), 0)?;
        block.fill(id, vector);
        Ok(Node { id, block, handle: Some(handle) })
    }

    fn write(&mut self, node: &mut Node<Self::Handle>) -> Result<()> {
        if let Some(handle) = &mut node.handle {
            match handle.write_all_at(node.block.bytes(), 0) {
                Ok(()) => return Ok(()),
                // The handle expired because its row was changed after it had been opened.
                Err(rusqlite::Error::SqliteFailure(failure, _)) if failure.code == ErrorCode::OperationAborted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut handle = self.blob(node.id, true)?;
        handle.write_all_at(node.block.bytes(), 0)?;
        node.handle = Some(handle);
        Ok(())
    }

    fn close(&mut self, node: Node<Self::Handle>) {
        if let Some(cache) = &mut self.cache {
            cache.insert(node.id, node.block);
        }
    }
}
