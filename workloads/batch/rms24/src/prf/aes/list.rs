//! From a bit for every block to the blocks.

use crate::geometry::Place;

/// Positions of a byte's set bits, in ascending order; entries after the last one are undefined.
static POSITIONS: [[u8; 8]; 256] = positions();
/// Places are written eight at a time, and as whole numbers, which compilers turn into whole registers.
const AT_A_TIME: usize = 8;
/// Places that a list of blocks needs room for beyond its last.
pub const ROOM: usize = AT_A_TIME;
const _: () = assert!(cfg!(target_endian = "little") && size_of::<Place>() == 8);

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

/// Writes the blocks whose bits are set, in order and with an offset of zero. Returns how many there are.
///
/// # Panics
///
/// When `places` has no room for eight more than that.
#[inline(always)]
pub fn blocks_of_bits(words: &[u64], blocks: u32, places: &mut [Place]) -> usize {
    let mut list = List::new(words, false, blocks);
    while list.add_word(&[], places) {}
    list.count
}

/// Writes the blocks whose bits are set, in order, with an offset each; and those of the others, if there is room given for them, with the
/// same offsets one by one, or with zeros beyond the last of them. Returns how many of the first there are.
///
/// # Panics
///
/// When there is no room for eight more than there are of either.
pub fn expand(
    offset: impl Fn(u32) -> u32,
    words: &[u64],
    blocks: u32,
    places: &mut [Place],
    others: Option<&mut [Place]>,
) -> usize {
    let count = blocks_of_bits(words, blocks, places);
    places[..count].iter_mut().for_each(|place| place.offset = offset(place.block));
    if let Some(others) = others {
        let words: Vec<u64> = words.iter().map(|word| !word).collect();
        blocks_of_bits(&words, blocks, others);
        others.iter_mut().zip(&places[..count]).for_each(|(other, place)| other.offset = place.offset);
    }
    count
}

/// Places that a word takes room for: it may have as many blocks, and the last eight are written as a whole.
pub(super) const AT_MOST: usize = 64 + AT_A_TIME;

/// A list of blocks that is written word by word.
pub(super) struct List<'a> {
    words: &'a [u64],
    /// XORed to each word: all ones if the listed blocks are those with cleared bits.
    flip: u64,
    /// The block of the next word's lowest bit, and how many there are.
    first: u32,
    blocks: u32,
    /// Blocks written so far.
    pub(super) count: usize,
}

impl<'a> List<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a [u64], others: bool, blocks: u32) -> Self {
        Self { words, flip: if others { u64::MAX } else { 0 }, first: 0, blocks, count: 0 }
    }

    /// Writes the blocks of the next word, with the offsets of the places of the same numbers in `offsets`, or with zeros where there are
    /// not [`AT_MOST`] of them. Reports whether there was a word.
    #[inline(always)]
    pub(super) fn add_word(&mut self, offsets: &[Place], places: &mut [Place]) -> bool {
        let Some((word, rest)) = self.words.split_first().filter(|_| self.first < self.blocks) else { return false };
        let word = (word ^ self.flip) & u64::MAX >> (64 - (self.blocks - self.first).min(64));
        let enough = offsets.get(self.count..).and_then(|offsets| offsets.first_chunk());
        self.count += blocks_of_word(word, self.first, &mut places[self.count..], enough);
        (self.words, self.first) = (rest, self.first + 64);
        true
    }
}

/// Writes the blocks of a word, whose lowest bit is that of the block `first`, with these offsets or with zeros.
#[inline(always)]
fn blocks_of_word(word: u64, first: u32, places: &mut [Place], offsets: Option<&[Place; AT_MOST]>) -> usize {
    let all = word.count_ones() as usize;
    // Whether there is room is asked once for a word: once for every byte, building a query took 7 % longer on Zen 4.
    let places = &mut places[..all + AT_A_TIME];
    let mut count = 0;
    for (first, byte) in (first..).step_by(8).zip(word.to_le_bytes()) {
        let mut both = [0; AT_A_TIME];
        if let Some(offsets) = offsets {
            // SAFETY: `count` is at most 64, and eight places are 64 bytes, of each first its block, the low half of a number, then its
            // offset.
            let read = unsafe { offsets.as_ptr().add(count).cast::<[u64; AT_A_TIME]>().read_unaligned() };
            both = read.map(|both| both >> 32 << 32);
        }
        for (both, position) in both.iter_mut().zip(&POSITIONS[usize::from(byte)]) {
            *both += u64::from(first) + u64::from(*position);
        }
        // SAFETY: `count` is at most `all`, and there is room for eight more; eight places are 64 bytes, of each first its block, the low
        // half of a number, then its offset.
        unsafe { places.as_mut_ptr().add(count).cast::<[u64; AT_A_TIME]>().write_unaligned(both) };
        count += byte.count_ones() as usize;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_blocks_match_the_bits() {
        for blocks in [1_u32, 7, 8, 63, 64, 65, 130, 200] {
            let words = [0x0123_4567_89ab_cdef, u64::MAX, 0, 0xf0f0_0000_ffff_0001];
            let is_set = |block: &u32| words[*block as usize / 64] >> (block % 64) & 1 == 1;
            let expected: Vec<u32> = (0..blocks).filter(is_set).collect();
            let mut places = vec![Place { block: 9, offset: 9 }; expected.len() + AT_A_TIME];
            let count = blocks_of_bits(&words, blocks, &mut places);
            let found: Vec<u32> = places[..count].iter().map(|place| place.block).collect();
            assert_eq!(found, expected, "{blocks} blocks");
            assert!(places[..count].iter().all(|place| place.offset == 0));
        }
    }

    #[test]
    fn the_others_have_the_same_offsets_one_by_one_and_zeros_beyond_them() {
        let (words, offset) = ([0b0010_0110_u64], |block| 100 + block);
        let mut room = [[Place { block: 9, offset: 9 }; 64]; 2];
        let [places, others] = &mut room;
        assert_eq!(expand(offset, &words, 8, places, Some(others)), 3);
        let pairs = |places: &[Place]| places.iter().map(|place| (place.block, place.offset)).collect::<Vec<_>>();
        assert_eq!(pairs(&places[..3]), [(1, 101), (2, 102), (5, 105)]);
        assert_eq!(pairs(&others[..5]), [(0, 101), (3, 102), (4, 105), (6, 0), (7, 0)]);
    }
}
