//! One entry in each of some blocks: a bit for every block, and from the bits the places.

use crate::geometry::{Geometry, Place};
use crate::hints::Hint;
use crate::prf::{AnyPrf, Prf};

/// The bits of a byte that are set, the lowest first; what follows the last of them means nothing.
const POSITIONS: [[u8; 8]; 256] = positions();
/// Places are written eight at a time.
const ROOM: usize = 8;

const fn positions() -> [[u8; 8]; 256] {
    let mut all = [[0; 8]; 256];
    let mut byte = 0;
    while byte < all.len() {
        let (mut bit, mut set) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                all[byte][set] = bit as u8;
                set += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    all
}

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

    /// The blocks that are in, in order, with the offsets of a hint that [`cover`](Self::cover) was called with last.
    pub fn places(&self, prf: &AnyPrf, hint: &Hint, places: &mut Vec<Place>) {
        self.blocks(|word| word, places);
        match prf {
            AnyPrf::ChaCha(_) => places.iter_mut().for_each(|place| place.offset = self.offsets[place.block as usize]),
            AnyPrf::Aes(prf) => prf.offsets_at(hint.id, places),
        }
    }

    /// The blocks that are not in, in order, with the offsets of `places` one by one.
    pub fn other_places(&self, places: &[Place], others: &mut Vec<Place>) {
        self.blocks(|word| !word, others);
        for (other, place) in others.iter_mut().zip(places) {
            other.offset = place.offset;
        }
    }

    /// The blocks whose bits are set, with an offset of zero.
    fn blocks(&self, bits: impl Fn(u64) -> u64, places: &mut Vec<Place>) {
        let blocks = self.geometry.blocks();
        // A hint covers half of the blocks, neither more nor less, and its extra entry takes the place of the wanted one.
        places.resize(self.geometry.half() + ROOM, Place { block: 0, offset: 0 });
        let mut count = 0;
        for (first, word) in (0..blocks).step_by(64).zip(&self.words) {
            let beyond = 64 - (blocks - first).min(64);
            let bytes = (bits(*word) & u64::MAX >> beyond).to_le_bytes();
            for (first, byte) in (first..).step_by(8).zip(bytes) {
                let room = &mut places[count..count + ROOM];
                for (place, position) in room.iter_mut().zip(POSITIONS[usize::from(byte)]) {
                    *place = Place { block: first + u32::from(position), offset: 0 };
                }
                count += byte.count_ones() as usize;
            }
        }
        places.truncate(count);
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
