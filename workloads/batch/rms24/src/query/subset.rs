//! One entry in each of some blocks, as a bit and an offset for every block.

use super::question::Question;
use crate::geometry::{Geometry, Place};
use crate::prf::{AnyPrf, Prf};
use crate::search::Strategy;

/// How the values of all blocks are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expansion {
    /// Two calls of the function for every block, as the document's program.
    PerCall,
    /// As many values per call as there are.
    Bulk,
}

impl Expansion {
    /// What a strategy does.
    #[must_use]
    pub fn of(strategy: Strategy) -> Self {
        match strategy {
            Strategy::ChaChaDouble | Strategy::ChaChaOffsetFirst | Strategy::ChaChaEarlyExit => Self::PerCall,
            Strategy::AesUniform | Strategy::AesPacked => Self::Bulk,
        }
    }
}

/// Some blocks, and an offset in every block whether it is one of them or not.
#[derive(Debug, Clone)]
pub struct Subset {
    /// A bit per block; none beyond the last.
    words: Vec<u64>,
    offsets: Vec<u32>,
    selects: Vec<u32>,
}

impl Subset {
    /// No blocks.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let blocks = geometry.blocks() as usize;
        Self { words: vec![0; blocks.div_ceil(64)], offsets: vec![0; blocks], selects: vec![0; blocks] }
    }

    /// The blocks of a hint whose select values are `covered`.
    pub fn expand(&mut self, prf: &AnyPrf, id: u32, covered: impl Fn(u32) -> bool, expansion: Expansion) {
        match (expansion, prf) {
            (Expansion::Bulk, prf) => {
                prf.selects(id, &mut self.selects);
                prf.offsets(id, &mut self.offsets);
            }
            (Expansion::PerCall, AnyPrf::ChaCha(prf)) => self.call_by_call(prf, id),
            (Expansion::PerCall, AnyPrf::Aes(prf)) => self.call_by_call(prf, id),
        }
        for (word, selects) in self.words.iter_mut().zip(self.selects.chunks(64)) {
            *word = (0..).zip(selects).fold(0, |word, (bit, select)| word | u64::from(covered(*select)) << bit);
        }
    }

    fn call_by_call(&mut self, prf: &impl Prf, id: u32) {
        for (block, (select, offset)) in (0..).zip(self.selects.iter_mut().zip(&mut self.offsets)) {
            (*select, *offset) = (prf.select(id, block), prf.offset(id, block));
        }
    }

    /// Takes a block out, if it is in.
    pub fn remove(&mut self, block: u32) {
        self.words[block as usize / 64] &= !(1 << (block % 64));
    }

    /// Puts a block in, with this offset.
    pub fn insert(&mut self, place: Place) {
        self.words[place.block as usize / 64] |= 1 << (place.block % 64);
        self.offsets[place.block as usize] = place.offset;
    }

    /// The entries of the blocks that are in, in the order of blocks.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.places_where(|word| word)
    }

    /// The entries of the blocks that are not in, in the order of blocks.
    pub fn other_places(&self) -> impl Iterator<Item = Place> + '_ {
        self.places_where(|word| !word)
    }

    fn places_where(&self, bits: impl Fn(u64) -> u64) -> impl Iterator<Item = Place> {
        let words = (0..).step_by(64).zip(self.words.iter().zip(self.offsets.chunks(64)));
        words.flat_map(move |(first, (word, offsets))| {
            let mut left = bits(*word) & u64::MAX >> (64 - offsets.len());
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                offsets.get(bit as usize).map(|offset| Place { block: first + bit, offset: *offset })
            })
        })
    }

    /// Both halves as one question; the other half shares this one's offsets. The blocks that are in have ones in the mask, or zeroes if
    /// it is `inverted`.
    #[must_use]
    pub fn halves(&self, inverted: bool) -> Question {
        let blocks = self.offsets.len();
        let flip = if inverted { u64::MAX } else { 0 };
        let mut mask: Vec<u8> = self.words.iter().flat_map(|word| (word ^ flip).to_le_bytes()).collect();
        mask.truncate(blocks.div_ceil(8));
        if let (Some(last), rest @ 1..) = (mask.last_mut(), blocks % 8) {
            *last &= 0xff >> (8 - rest);
        }
        let offsets = self.places().map(|place| u16::try_from(place.offset).expect("offsets are below 2^16")).collect();
        Question::Halves { mask, offsets }
    }
}
