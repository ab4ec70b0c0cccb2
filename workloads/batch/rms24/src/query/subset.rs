//! One entry in each of some blocks: a bit for every block, and from the bits the places.

use crate::geometry::{Geometry, Place};
use crate::hints::Hint;
use crate::prf::{AnyPrf, Prf, ROOM, expand};

/// Some blocks.
#[derive(Debug, Clone)]
pub struct Subset {
    geometry: Geometry,
    /// A bit per block; none beyond the last.
    words: Vec<u64>,
    /// The offsets in all blocks, of a function that is called for each.
    offsets: Vec<u32>,
}

impl Subset {
    /// No blocks.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, words: vec![0; (geometry.blocks() as usize).div_ceil(64)], offsets: Vec::new() }
    }

    /// The blocks that a hint covers. ChaCha is called twice for every block, as the document's program does; AES gives several values
    /// per call.
    pub fn cover(&mut self, prf: &AnyPrf, hint: &Hint) {
        match prf {
            AnyPrf::ChaCha(prf) => {
                self.words.fill(0);
                self.offsets.clear();
                for block in 0..self.geometry.blocks() {
                    let (select, offset) = (prf.select(hint.id, block), prf.offset(hint.id, block));
                    self.words[block as usize / 64] |= u64::from(select < hint.cutoff) << (block % 64);
                    self.offsets.push(offset);
                }
            }
            AnyPrf::Aes(prf) => prf.below(hint.id, hint.cutoff, &mut self.words),
        }
        if hint.flipped {
            self.words.iter_mut().for_each(|word| *word = !*word);
        }
        let last = self.geometry.blocks() % 64;
        if let (Some(word), 1..) = (self.words.last_mut(), last) {
            *word &= (1 << last) - 1;
        }
    }

    /// Takes a block out, if it is in.
    pub fn remove(&mut self, block: u32) {
        self.words[block as usize / 64] &= !(1 << (block % 64));
    }

    /// Puts a block in.
    pub fn insert(&mut self, block: u32) {
        self.words[block as usize / 64] |= 1 << (block % 64);
    }

    /// The blocks that are in, in order, with the offsets of a hint that [`cover`](Self::cover) was called with last; and those that are
    /// not, where they are wanted, with the same offsets one by one.
    pub fn places(&self, prf: &AnyPrf, hint: &Hint, places: &mut Vec<Place>, mut others: Option<&mut Vec<Place>>) {
        let blocks = self.geometry.blocks();
        for places in [&mut *places].into_iter().chain(others.as_deref_mut()) {
            // A hint covers half of the blocks, neither more nor less, and its extra entry takes the place of the wanted one.
            places.resize(self.geometry.half() + ROOM, Place { block: 0, offset: 0 });
        }
        let count = match prf {
            AnyPrf::ChaCha(_) => {
                let offset = |block: u32| self.offsets[block as usize];
                expand(offset, &self.words, blocks, places, others.as_deref_mut().map(Vec::as_mut_slice))
            }
            AnyPrf::Aes(prf) => {
                prf.expand(hint.id, &self.words, blocks, places, others.as_deref_mut().map(Vec::as_mut_slice))
            }
        };
        places.truncate(count);
        if let Some(others) = others {
            others.truncate(blocks as usize - count);
        }
    }

    /// The bits, those of the blocks that are in, or those of the others.
    pub fn mask(&self, others: bool, mask: &mut Vec<u8>) {
        let blocks = self.geometry.blocks() as usize;
        let flip = if others { u64::MAX } else { 0 };
        mask.clear();
        mask.extend(self.words.iter().flat_map(|word| (word ^ flip).to_le_bytes()));
        mask.truncate(blocks.div_ceil(8));
        if let (Some(last), rest @ 1..) = (mask.last_mut(), blocks % 8) {
            *last &= 0xff >> (8 - rest);
        }
    }
}
