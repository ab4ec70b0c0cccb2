//! The function, by whichever instructions compute it.

use assay_harness::path::{self, Unavailable};

use super::layout::{Lanes, Matcher, NEXT_BLOCK, OFFSET, Offsets, SELECT, SELECTS};
use super::wish::Wish;
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{list, portable};
use crate::geometry::Place;
use crate::prf::{Prf, Secret};

/// Hints that a search looks at as a whole.
pub const CHUNK: u32 = 512;
/// Calls per step of the bulk functions.
const STEP: usize = 64;

/// AES-128 under a client's secret.
#[derive(Debug, Clone)]
pub struct AesPrf {
    cipher: Cipher,
    offsets: Offsets,
}

impl AesPrf {
    /// The function of a secret, computed by the instructions of `path`.
    #[must_use]
    pub fn new(secret: &Secret, block_size: u32, path: AesPath) -> Self {
        let key = secret.key("aes-128");
        let key = *key.first_chunk().expect("32 bytes start with 16");
        Self { cipher: path.cipher(key), offsets: Offsets { block_size, lanes: Lanes::of(block_size) } }
    }

    /// How outputs are cut into offsets.
    #[must_use]
    pub fn lanes(&self) -> Lanes {
        self.offsets.lanes
    }

    /// A matcher for hints with this offset.
    #[must_use]
    pub fn matcher(&self, offset: u32) -> Matcher {
        Matcher(self.offsets.wanted(offset))
    }

    /// How many of the `hints` hints from the first of `group` on do not match in a block, the first ones: all, or some whole chunks. The
    /// next chunk has one that does, or would have if there were more hints.
    #[must_use]
    pub fn skip(&self, matcher: &Matcher, group: u32, block: u32, hints: u32) -> u32 {
        let lanes = self.lanes().count();
        let outputs = hints.div_ceil(lanes) as usize;
        let low = u64::from(block) << 32 | u64::from(group);
        hints.min(self.cipher.skip(matcher, low, outputs, (CHUNK / lanes) as usize) as u32 * lanes)
    }

    /// A bit for every hint from the first of `group` on: whether it matches in a block.
    pub fn matches(&self, matcher: &Matcher, group: u32, block: u32, words: &mut [u64]) {
        let low = u64::from(block) << 32 | u64::from(group);
        match &self.cipher {
            Cipher::Portable(cipher) => cipher.matches(matcher, low, words),
            #[cfg(target_arch = "x86_64")]
            Cipher::Native(cipher) => cipher.run(x86::Matches { keys: cipher.keys(), matcher, low, words }),
        }
    }

    /// Outputs with the offsets of one block in the groups of hints from `group` on.
    #[inline]
    pub fn offset_outputs(&self, group: u32, block: u32, outputs: &mut [u128]) {
        self.cipher.fill(u64::from(block) << 32 | u64::from(group), 1, OFFSET, outputs);
    }

    /// Outputs with the select values of the four blocks from `4 * quad` on, in the hints from `hint` on.
    #[inline]
    pub fn select_outputs(&self, hint: u32, quad: u32, outputs: &mut [u128]) {
        self.cipher.fill(u64::from(quad) << 32 | u64::from(hint), 1, SELECT, outputs);
    }

    /// A bit for every block: whether the hint's select value there is below the cutoff. Bits beyond the last block mean nothing.
    pub fn below(&self, hint: u32, cutoff: u32, words: &mut [u64]) {
        self.cipher.below(u64::from(hint), cutoff, words);
    }

    /// Writes the blocks whose bits are set, in order, with the hint's offsets there; and those of the others, if there is room given for
    /// them, with the same offsets one by one, or with zeros beyond the last of them. Returns how many of the first there are.
    ///
    /// # Panics
    ///
    /// When there is no room for eight more than there are of either.
    pub fn expand(
        &self,
        hint: u32,
        words: &[u64],
        blocks: u32,
        places: &mut [Place],
        others: Option<&mut [Place]>,
    ) -> usize {
        let lanes = self.lanes().count();
        match &self.cipher {
            Cipher::Portable(_) => list::expand(|block| self.offset(hint, block), words, blocks, places, others),
            #[cfg(target_arch = "x86_64")]
            Cipher::Native(cipher) => {
                let (keys, group, lane) = (cipher.keys(), u64::from(hint / lanes), hint % lanes);
                cipher.run(x86::Expand { keys, group, lane, offsets: self.offsets, words, blocks, places, others })
            }
        }
    }

    /// The offset in one lane of an output.
    #[inline]
    #[must_use]
    pub fn offset_in(&self, output: u128, lane: u32) -> u32 {
        self.offsets.of(output, lane)
    }

    /// The select value in one lane of an output.
    #[inline]
    #[must_use]
    pub fn select_in(output: u128, lane: u32) -> u32 {
        (output >> (32 * lane)) as u32
    }

    fn one(&self, low: u64, domain: u64) -> u128 {
        let mut output = [0];
        self.cipher.fill(low, 0, domain, &mut output);
        output[0]
    }
}

impl Prf for AesPrf {
    fn select(&self, hint: u32, block: u32) -> u32 {
        let output = self.one(u64::from(block / SELECTS) << 32 | u64::from(hint), SELECT);
        Self::select_in(output, block % SELECTS)
    }

    fn offset(&self, hint: u32, block: u32) -> u32 {
        let lanes = self.lanes().count();
        let output = self.one(u64::from(block) << 32 | u64::from(hint / lanes), OFFSET);
        self.offset_in(output, hint % lanes)
    }

    fn selects(&self, hint: u32, values: &mut [u32]) {
        let mut outputs = [0; STEP];
        let mut low = u64::from(hint);
        for values in values.chunks_mut(STEP * SELECTS as usize) {
            let outputs = &mut outputs[..values.len().div_ceil(SELECTS as usize)];
            self.cipher.fill(low, NEXT_BLOCK, SELECT, outputs);
            low += outputs.len() as u64 * NEXT_BLOCK;
            for (values, output) in values.chunks_mut(SELECTS as usize).zip(outputs) {
                for (lane, value) in values.iter_mut().enumerate() {
                    *value = Self::select_in(*output, lane as u32);
                }
            }
        }
    }

    fn offsets(&self, hint: u32, values: &mut [u32]) {
        let lanes = self.lanes().count();
        let (mut low, lane) = (u64::from(hint / lanes), hint % lanes);
        let mut outputs = [0; STEP];
        for values in values.chunks_mut(STEP) {
            let outputs = &mut outputs[..values.len()];
            self.cipher.fill(low, NEXT_BLOCK, OFFSET, outputs);
            low += values.len() as u64 * NEXT_BLOCK;
            for (value, output) in values.iter_mut().zip(outputs) {
                *value = self.offset_in(*output, lane);
            }
        }
    }
}

/// A cipher under one key.
#[derive(Debug, Clone)]
enum Cipher {
    Portable(portable::Portable),
    #[cfg(target_arch = "x86_64")]
    Native(x86::Native),
}

impl Cipher {
    /// Encrypts the inputs `high << 64 | (low + i * step)`.
    #[inline]
    fn fill(&self, low: u64, step: u64, high: u64, outputs: &mut [u128]) {
        match self {
            Self::Portable(cipher) => cipher.fill(low, step, high, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::Fill { keys: cipher.keys(), low, step, high, outputs }),
        }
    }

    fn skip(&self, matcher: &Matcher, low: u64, outputs: usize, chunk: usize) -> usize {
        match self {
            Self::Portable(cipher) => cipher.skip(matcher, low, outputs, chunk),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::Skip { keys: cipher.keys(), matcher, low, outputs, chunk }),
        }
    }

    fn below(&self, low: u64, cutoff: u32, words: &mut [u64]) {
        match self {
            Self::Portable(cipher) => cipher.below(low, cutoff, words),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::Below { keys: cipher.keys(), low, cutoff, words }),
        }
    }
}

/// A way to compute AES that this CPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AesPath(Wish);

impl AesPath {
    /// The way that `wish` asks for.
    ///
    /// # Errors
    ///
    /// When the CPU does not have it.
    pub fn select(wish: Wish) -> Result<Self, Unavailable> {
        path::select(wish, &Wish::CHOICES, &Self::available(), |path| path.name())
    }

    /// Every way that this CPU has, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = [Self(Wish::Portable)].into_iter();
        #[cfg(target_arch = "x86_64")]
        let all = all.chain(x86::Width::available().into_iter().map(|width| Self(width.wish())));
        all.collect()
    }

    /// Its name on a command line and in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    fn cipher(self, key: [u8; 16]) -> Cipher {
        #[cfg(target_arch = "x86_64")]
        if let Some(width) = x86::Width::available().into_iter().find(|width| width.wish() == self.0) {
            return Cipher::Native(x86::Native::new(width, key));
        }
        Cipher::Portable(portable::Portable::new(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prf::aes::ROOM;

    /// FIPS 197, appendix B: 3243f6a8 885a308d 313198a2 e0370734 under 2b7e1516 28aed2a6 abf71588 09cf4f3c.
    #[test]
    fn every_path_encrypts_as_the_standard_does() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let input = u128::from_le_bytes(0x3243_f6a8_885a_308d_3131_98a2_e037_0734_u128.to_be_bytes());
        let expected = u128::from_le_bytes(0x3925_841d_02dc_09fb_dc11_8597_196a_0b32_u128.to_be_bytes());
        for path in AesPath::available() {
            let mut output = [0];
            path.cipher(key).fill(input as u64, 0, (input >> 64) as u64, &mut output);
            assert_eq!(output, [expected], "{}", path.name());
        }
    }

    #[test]
    fn every_path_fills_any_length_and_step_as_the_portable_one() {
        let reference = AesPath(Wish::Portable).cipher([7; 16]);
        for path in AesPath::available() {
            let cipher = path.cipher([7; 16]);
            for length in (0..70).chain([127, 128, 129, 500]) {
                for (low, step) in [(0, 1), (u64::MAX - 3, 1), (0xffff_fff0, NEXT_BLOCK), (9, 0)] {
                    let (mut expected, mut found) = (vec![0; length], vec![0; length]);
                    reference.fill(low, step, 2, &mut expected);
                    cipher.fill(low, step, 2, &mut found);
                    assert_eq!(found, expected, "{}: {length} from {low} by {step}", path.name());
                }
            }
        }
    }

    /// Reference for a path's search and expansion, value by value.
    #[test]
    fn every_path_searches_and_expands_as_single_calls_do() {
        let secret = Secret::from_seed(4);
        for block_size in [1_u32, 2, 3, 64, 363, 4096, 42_827, 46_341] {
            for path in AesPath::available() {
                let prf = AesPrf::new(&secret, block_size, path);
                let lanes = prf.lanes().count();
                for (hint, blocks) in [(0, 1_u32), (5, 64), (77, 65), (1003, 200), (9, 257), (1 << 20, 640)] {
                    let name = format!("{}, blocks of {block_size}, hint {hint}, {blocks} blocks", path.name());
                    let mut words = vec![0; blocks.div_ceil(64) as usize];
                    for cutoff in [0, 1, 1 << 31, u32::MAX] {
                        prf.below(hint, cutoff, &mut words);
                        for block in 0..blocks {
                            let found = words[block as usize / 64] >> (block % 64) & 1 == 1;
                            assert_eq!(found, prf.select(hint, block) < cutoff, "{name}, block {block}");
                        }
                    }
                    let group = hint / lanes;
                    for offset in [0, block_size / 2, block_size - 1] {
                        let hints = 5 * blocks;
                        let first = (0..hints).find(|i| prf.offset(group * lanes + i, 3) == offset);
                        let skipped = prf.skip(&prf.matcher(offset), group, 3, hints);
                        assert!(skipped <= first.unwrap_or(hints), "{name}, offset {offset}: {skipped} skipped");
                        prf.matches(&prf.matcher(offset), group, 3, &mut words);
                        for i in 0..64 * words.len() as u32 {
                            let found = words[i as usize / 64] >> (i % 64) & 1 == 1;
                            assert_eq!(found, prf.offset(group * lanes + i, 3) == offset, "{name}, hint {i}");
                        }
                        assert!(
                            skipped == hints || skipped.is_multiple_of(CHUNK),
                            "{name}, offset {offset}: {skipped}"
                        );
                    }
                }
            }
        }
    }

    /// Of every path the reference for lists of places; half of all bits are set, few, none, or all.
    #[test]
    fn every_path_lists_the_places_of_bits_and_the_others_as_the_reference_does() {
        let room = |blocks: u32| vec![Place { block: 9, offset: 9 }; blocks as usize + ROOM];
        for block_size in [1_u32, 2, 3, 363, 4096, 42_827, 1 << 16] {
            for path in AesPath::available() {
                let prf = AesPrf::new(&Secret::from_seed(4), block_size, path);
                for (hint, blocks) in [(0, 1_u32), (5, 64), (77, 65), (1003, 200), (9, 257), (1 << 20, 3000)] {
                    for cutoff in [0, 1, 1 << 28, 1 << 31, 0xf000_0000, u32::MAX] {
                        let name = format!("{}, blocks of {block_size}, {blocks} blocks, hint {hint}", path.name());
                        let mut words = vec![0; blocks.div_ceil(64) as usize];
                        prf.below(hint, cutoff, &mut words);
                        let [mut expected, mut expected_others, mut places, mut others] =
                            [(); 4].map(|()| room(blocks));
                        let offset = |block: u32| prf.offset(hint, block);
                        let count = list::expand(offset, &words, blocks, &mut expected, Some(&mut expected_others));
                        let all = blocks as usize - count;
                        for other in &mut expected_others[all.min(count)..all] {
                            assert_eq!(other.offset, 0, "{name}: beyond the last");
                        }
                        assert_eq!(prf.expand(hint, &words, blocks, &mut places, Some(&mut others)), count, "{name}");
                        assert_eq!(places[..count], expected[..count], "{name}, below {cutoff}");
                        assert_eq!(others[..all], expected_others[..all], "{name}, the others, below {cutoff}");
                        let mut alone = room(blocks);
                        assert_eq!(prf.expand(hint, &words, blocks, &mut alone, None), count, "{name}");
                        assert_eq!(alone[..count], places[..count], "{name}, alone, below {cutoff}");
                    }
                }
            }
        }
    }

    /// A search that looked at every chunk closely would be right and slow.
    #[test]
    fn all_chunks_before_the_one_with_the_first_match_are_skipped() {
        for block_size in [42_827, 4096] {
            for path in AesPath::available() {
                let prf = AesPrf::new(&Secret::from_seed(4), block_size, path);
                let (lanes, hints) = (prf.lanes().count(), 20 * block_size);
                for group in [0, 1, 77] {
                    let first =
                        (0..hints).find(|i| prf.offset(group * lanes + i, 3) == 9).expect("20 are to be expected");
                    let skipped = prf.skip(&prf.matcher(9), group, 3, hints);
                    assert_eq!(skipped, first / CHUNK * CHUNK, "{}: group {group} of {block_size}", path.name());
                }
            }
        }
    }

    /// A chunk must not miss a value at either end of those that mean an offset.
    #[test]
    fn a_lane_of_an_output_matches_exactly_if_it_has_the_offset() {
        for block_size in [1_u32, 2, 3, 64, 363, 4096, 42_827, 46_341] {
            let prf = AesPrf::new(&Secret::from_seed(1), block_size, AesPath(Wish::Portable));
            for offset in [0, 1, block_size / 2, block_size - 1].into_iter().filter(|offset| *offset < block_size) {
                let matcher = prf.matcher(offset);
                // The first 32-bit value that means an offset, and the one before; and the offset itself for lanes of 16 bits.
                let edge = |offset: u32| ((u64::from(offset) << 32).div_ceil(u64::from(block_size))) as u32;
                for bits in [
                    edge(offset),
                    edge(offset).wrapping_sub(1),
                    edge(offset + 1),
                    edge(offset + 1).wrapping_sub(1),
                    offset,
                ] {
                    let output = u128::from(bits) << 32;
                    for lane in 0..prf.lanes().count() {
                        let found = matcher.lanes(output).1 >> lane & 1 == 1;
                        assert_eq!(
                            found,
                            prf.offset_in(output, lane) == offset,
                            "{bits:#x} for {offset} of {block_size}"
                        );
                    }
                }
            }
        }
    }
}
