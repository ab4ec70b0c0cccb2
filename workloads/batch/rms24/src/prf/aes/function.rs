//! The function, by whichever instructions compute it.

use assay_harness::path::{self, Unavailable};

use super::layout::{Lanes, Matcher, NEXT_BLOCK, OFFSET, Offsets, SELECT, SELECTS};
use super::list::blocks_of_bits;
use super::portable;
use super::wish::Wish;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::geometry::Place;
use crate::prf::{Prf, Secret};

/// Calls per step of the bulk functions.
const CHUNK: usize = 64;

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

    /// A matcher for hints with the entry `index` as their extra entry, or with the offset of `place`, that entry's.
    #[must_use]
    pub fn matcher(&self, index: u32, place: Place) -> Matcher {
        Matcher { index, wanted: self.offsets.wanted(place.offset) }
    }

    /// Whether any of the `hints` hints from the first of `group` on matches, of which `extras` are all extra entries that matter. It may
    /// say so of hints that do not, but never the other way round.
    #[must_use]
    pub fn may_contain(&self, matcher: &Matcher, group: u32, block: u32, hints: u32, extras: &[u32]) -> bool {
        let outputs = hints.div_ceil(self.lanes().count()) as usize;
        self.cipher.may_contain(matcher, u64::from(block) << 32 | u64::from(group), outputs, extras)
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

    /// Writes the blocks whose bits are set, or those of the others, in order and with an offset of zero. Returns how many there are.
    /// `places` has room for eight more than that.
    pub fn blocks(&self, words: &[u64], others: bool, blocks: u32, places: &mut [Place]) -> usize {
        self.cipher.blocks(words, others, blocks, places)
    }

    /// Writes the hint's offsets in the blocks of these places.
    pub fn offsets_at(&self, hint: u32, places: &mut [Place]) {
        let lanes = self.lanes().count();
        self.cipher.offsets(self.offsets, u64::from(hint / lanes), hint % lanes, places);
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
        let mut outputs = [0; CHUNK];
        let mut low = u64::from(hint);
        for values in values.chunks_mut(CHUNK * SELECTS as usize) {
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
        let mut outputs = [0; CHUNK];
        for values in values.chunks_mut(CHUNK) {
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

    fn may_contain(&self, matcher: &Matcher, low: u64, outputs: usize, extras: &[u32]) -> bool {
        match self {
            Self::Portable(cipher) => cipher.may_contain(matcher, low, outputs, extras),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::MayContain { keys: cipher.keys(), matcher, low, outputs, extras }),
        }
    }

    fn below(&self, low: u64, cutoff: u32, words: &mut [u64]) {
        match self {
            Self::Portable(cipher) => cipher.below(low, cutoff, words),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::Below { keys: cipher.keys(), low, cutoff, words }),
        }
    }

    fn blocks(&self, words: &[u64], others: bool, blocks: u32, places: &mut [Place]) -> usize {
        match self {
            Self::Portable(_) => blocks_of_bits(words, others, blocks, places),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::Blocks { words, others, blocks, places }),
        }
    }

    fn offsets(&self, offsets: Offsets, group: u64, lane: u32, places: &mut [Place]) {
        match self {
            Self::Portable(cipher) => cipher.offsets(offsets, group, lane, places),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::OffsetsAt { keys: cipher.keys(), group, lane, offsets, places }),
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

    /// The definition of what a path computes for a search or an expansion, value by value.
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
                    // What an offset was before must not matter.
                    let mut places: Vec<Place> =
                        (0..blocks).map(|i| Place { block: i * 31 % 1009, offset: !i }).collect();
                    prf.offsets_at(hint, &mut places);
                    for place in &places {
                        assert_eq!(place.offset, prf.offset(hint, place.block), "{name}, block {}", place.block);
                    }
                    let group = hint / lanes;
                    let extras: Vec<u32> = (0..blocks).map(|i| 1_000_000 + i).collect();
                    for offset in [0, block_size / 2, block_size - 1] {
                        let contains = (0..blocks).any(|i| prf.offset(group * lanes + i, 3) == offset);
                        let matcher = prf.matcher(7, Place { block: 3, offset });
                        assert!(
                            !contains || prf.may_contain(&matcher, group, 3, blocks, &[]),
                            "{name}, offset {offset}"
                        );
                        let matcher = prf.matcher(1_000_000 + blocks - 1, Place { block: 3, offset });
                        assert!(prf.may_contain(&matcher, group, 3, blocks, &extras), "{name}: the last extra entry");
                    }
                }
            }
        }
    }

    /// A search that looked at every chunk closely would be right and slow.
    #[test]
    fn chunks_without_a_match_are_told_from_those_with_one() {
        for path in AesPath::available() {
            let prf = AesPrf::new(&Secret::from_seed(4), 42_827, path);
            let (extras, matcher) = (vec![1; 512], prf.matcher(0, Place { block: 3, offset: 9 }));
            let close = (0..1000).filter(|chunk| prf.may_contain(&matcher, chunk * 128, 3, 512, &extras)).count();
            // 512 hints of which each matches with a probability of 1 / 42827.
            assert!((2..30).contains(&close), "{}: {close} of 1000", path.name());
        }
    }

    /// A chunk must not miss a value at either end of those that mean an offset.
    #[test]
    fn an_output_matches_exactly_if_one_of_its_lanes_has_the_offset() {
        for block_size in [1_u32, 2, 3, 64, 363, 4096, 42_827, 46_341] {
            let prf = AesPrf::new(&Secret::from_seed(1), block_size, AesPath(Wish::Portable));
            for offset in [0, 1, block_size / 2, block_size - 1].into_iter().filter(|offset| *offset < block_size) {
                let matcher = prf.matcher(0, Place { block: 0, offset });
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
                    let found = (0..prf.lanes().count()).any(|lane| prf.offset_in(output, lane) == offset);
                    assert_eq!(matcher.is_in(output), found, "{bits:#x} for {offset} of {block_size}");
                }
            }
        }
    }
}
