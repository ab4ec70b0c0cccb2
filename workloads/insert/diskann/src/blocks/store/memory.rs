//! Blocks in memory: fast, gone with the process.

use super::{Node, Store};
use crate::blocks::layout::{Block, Layout};
use crate::error::{Error, Result};

/// All blocks; the node `id` is number `id - 1`. A node that is out leaves a hole.
#[derive(Debug)]
pub struct Memory {
    layout: Layout,
    blocks: Vec<Option<Block>>,
}

impl Memory {
    /// Without any block.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { layout, blocks: Vec::new() }
    }

    /// Every block, in the order of the ids.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().flatten()
    }

    fn hole(&mut self, id: u64) -> Option<&mut Option<Block>> {
        self.blocks.get_mut(usize::try_from(id.checked_sub(1)?).ok()?)
    }
}

impl Store for Memory {
    type Handle = ();

    fn layout(&self) -> Layout {
        self.layout
    }

    fn open(&mut self, id: u64, _: bool) -> Result<Node<()>> {
        let block = self.hole(id).and_then(Option::take);
        let block = block.ok_or_else(|| Error::Damaged(format!("node {id} is missing")))?;
        Ok(Node { id, block, handle: () })
    }

    fn create(&mut self, id: u64, vector: &[f32]) -> Result<Node<()>> {
        if id != self.blocks.len() as u64 + 1 {
            return Err(Error::Damaged(format!("node {id} does not follow {}", self.blocks.len())));
        }
        self.blocks.push(None);
        Ok(Node { id, block: Block::new(self.layout, id, vector), handle: () })
    }

    fn write(&mut self, _: &mut Node<()>) -> Result<()> {
        Ok(())
    }

    fn close(&mut self, node: Node<()>) {
        if let Some(hole) = self.hole(node.id) {
            *hole = Some(node.block);
        }
    }
}
