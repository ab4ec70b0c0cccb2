//! From a bit for every block to the blocks.

use crate::geometry::Place;

/// The bits of a byte that are set, the lowest first; what follows the last of them means nothing.
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

/// Writes the blocks whose bits are set, or those of the others, in order and with an offset of zero. Returns how many there are.
///
/// # Panics
///
/// When `places` has no room for eight more than that.
#[inline(always)]
pub fn blocks_of_bits(words: &[u64], others: bool, blocks: u32, places: &mut [Place]) -> usize {
    let flip = if others { u64::MAX } else { 0 };
    let mut count = 0;
    for (first, word) in (0..blocks).step_by(64).zip(words) {
        let beyond = 64 - (blocks - first).min(64);
        let bytes = ((word ^ flip) & u64::MAX >> beyond).to_le_bytes();
        for (first, byte) in (first..).step_by(8).zip(bytes) {
            let room: &mut [Place; AT_A_TIME] =
                places[count..].first_chunk_mut().expect("there is room for eight more places");
            let mut both = [u64::from(first); AT_A_TIME];
            for (both, position) in both.iter_mut().zip(&POSITIONS[usize::from(byte)]) {
                *both += u64::from(*position);
            }
            // SAFETY: eight places are 64 bytes, of each first its block, the low half of a number, then its offset, zero.
            unsafe { room.as_mut_ptr().cast::<[u64; AT_A_TIME]>().write_unaligned(both) };
            count += byte.count_ones() as usize;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_are_those_of_the_bits() {
        for blocks in [1_u32, 7, 8, 63, 64, 65, 130, 200] {
            let words = [0x0123_4567_89ab_cdef, u64::MAX, 0, 0xf0f0_0000_ffff_0001];
            for others in [false, true] {
                let is_set = |block: &u32| words[*block as usize / 64] >> (block % 64) & 1 == 1;
                let expected: Vec<u32> = (0..blocks).filter(|block| is_set(block) != others).collect();
                let mut places = vec![Place { block: 9, offset: 9 }; expected.len() + AT_A_TIME];
                let count = blocks_of_bits(&words, others, blocks, &mut places);
                let found: Vec<u32> = places[..count].iter().map(|place| place.block).collect();
                assert_eq!(found, expected, "{blocks} blocks, others: {others}");
                assert!(places[..count].iter().all(|place| place.offset == 0));
            }
        }
    }
}
