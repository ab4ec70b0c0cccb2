//! AES-128 under one secret key that is expanded once. One call gives several values.
//!
//! ```text
//! select values   E(hint, block / 4, 1)          four of 32 bits, for four consecutive blocks of one hint
//! offsets         E(hint / lanes, block, 2)      for the same block of eight consecutive hints (16 bits each), or of four (32 bits)
//! ```
//!
//! Offsets are packed over hints because the search for a hint asks all hints about one block. A client that expands a hint asks one hint
//! about all blocks, and needs a whole call for each; but it expands one hint and searches through thousands.
//!
//! Sixteen bits make an unbiased offset only if the block size is a power of two. For other sizes an offset comes from 32 bits, by
//! multiplication: it is off uniform by a factor of at most 1 ± block size / 2^32, 10^-5 for the document's blocks. The bias is the same
//! for every offset that a server sees, whatever the wanted entry is.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use assay_harness::flags;
use assay_harness::path::{self, Unavailable};

use super::{Prf, Secret};
use crate::geometry::Place;

const SELECT: u64 = 1;
const OFFSET: u64 = 2;
/// Select values per call.
const SELECTS: u32 = 4;
/// What is added to an input to get to the next block of the database.
const NEXT_BLOCK: u64 = 1 << 32;
/// Calls per step of the bulk functions.
const CHUNK: usize = 64;

/// How an output is cut into offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Eight of 16 bits; the block size is a power of two.
    Eight,
    /// Four of 32 bits.
    Four,
}

impl Lanes {
    /// What blocks of this size take.
    #[must_use]
    pub fn of(block_size: u32) -> Self {
        if block_size.is_power_of_two() && block_size <= 1 << 16 { Self::Eight } else { Self::Four }
    }

    /// Offsets per output.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
        }
    }
}

/// What the bits of a lane mean.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    block_size: u32,
    lanes: Lanes,
}

impl Offsets {
    /// The offset that the bits of a lane mean.
    #[inline(always)]
    fn of_bits(self, bits: u32) -> u32 {
        match self.lanes {
            Lanes::Eight => bits & (self.block_size - 1),
            Lanes::Four => ((u64::from(bits) * u64::from(self.block_size)) >> 32) as u32,
        }
    }

    /// The offset in one lane of an output.
    #[inline(always)]
    fn of(self, output: u128, lane: u32) -> u32 {
        match self.lanes {
            Lanes::Eight => self.of_bits(u32::from((output >> (16 * lane)) as u16)),
            Lanes::Four => self.of_bits((output >> (32 * lane)) as u32),
        }
    }
}

/// What to look for: hints that have a certain offset in a block, or a certain extra entry.
#[derive(Debug, Clone, Copy)]
pub struct Matcher {
    /// The extra entry.
    index: u32,
    wanted: Wanted,
}

/// The bits of lanes that mean a certain offset.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// Of lanes of 16 bits: those that count, and what they are.
    Bits { mask: u16, bits: u16 },
    /// Of lanes of 32 bits: the first value that multiplication maps to the offset, and how far it is from there to the last.
    Range { first: u32, reach: u32 },
}

impl Matcher {
    /// Whether any lane of an output has the offset.
    #[must_use]
    pub fn is_in(&self, output: u128) -> bool {
        match self.wanted {
            Wanted::Bits { mask, bits } => (0..8).any(|lane| (output >> (16 * lane)) as u16 & mask == bits),
            Wanted::Range { first, reach } => {
                (0..4).any(|lane| ((output >> (32 * lane)) as u32).wrapping_sub(first) <= reach)
            }
        }
    }

    /// The same 16 bits in all lanes of a block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn lanes_of_16(lane: u16) -> u128 {
        u128::from(lane) * (u128::MAX / u128::from(u16::MAX))
    }

    /// The same 32 bits in all lanes of a block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn lanes_of_32(lane: u32) -> u128 {
        u128::from(lane) * (u128::MAX / u128::from(u32::MAX))
    }
}

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
        let size = u64::from(self.offsets.block_size);
        let wanted = match self.offsets.lanes {
            Lanes::Eight => Wanted::Bits { mask: (size - 1) as u16, bits: place.offset as u16 },
            Lanes::Four => {
                let start = |offset: u32| (u64::from(offset) << 32).div_ceil(size);
                let first = start(place.offset);
                Wanted::Range { first: first as u32, reach: (start(place.offset + 1) - first - 1) as u32 }
            }
        };
        Matcher { index, wanted }
    }

    /// Whether any of the hints from the first of `group` on, which have these extra entries, matches. It may say so of hints that do
    /// not, but never the other way round.
    #[must_use]
    pub fn may_contain(&self, matcher: &Matcher, group: u32, block: u32, extras: &[u32]) -> bool {
        let outputs = extras.len().div_ceil(self.lanes().count() as usize);
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
            Self::Native(cipher) => {
                cipher.run(x86::MayContain { keys: cipher.keys(), matcher, low, outputs, extras })
            }
        }
    }

    fn below(&self, low: u64, cutoff: u32, words: &mut [u64]) {
        match self {
            Self::Portable(cipher) => cipher.below(low, cutoff, words),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => cipher.run(x86::Below { keys: cipher.keys(), low, cutoff, words }),
        }
    }

    fn offsets(&self, offsets: Offsets, group: u64, lane: u32, places: &mut [Place]) {
        match self {
            Self::Portable(cipher) => cipher.offsets(offsets, group, lane, places),
            #[cfg(target_arch = "x86_64")]
            Self::Native(cipher) => {
                cipher.run(x86::OffsetsAt { keys: cipher.keys(), group, lane, offsets, places })
            }
        }
    }
}

/// A way to compute AES that this CPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AesPath(Wish);

/// A wish for a way to compute AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The fastest the CPU has.
    Auto,
    /// The `aes` crate, which brings its own detection.
    Portable,
    /// AES-NI with AVX2: one block per instruction.
    AesNi,
    /// VAES with AVX2: two blocks per instruction.
    Vaes256,
    /// VAES with AVX-512: four blocks per instruction.
    Vaes512,
}

impl Wish {
    /// Every wish, by the name it has on a command line.
    pub const CHOICES: [(&'static str, Self); 5] = [
        ("auto", Self::Auto),
        ("portable", Self::Portable),
        ("aes-ni", Self::AesNi),
        ("vaes256", Self::Vaes256),
        ("vaes512", Self::Vaes512),
    ];

    /// Its name on a command line and in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        flags::name(&self, &Self::CHOICES)
    }
}

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
        let mut all = vec![Self(Wish::Portable)];
        #[cfg(target_arch = "x86_64")]
        all.extend(x86::Width::available().into_iter().map(|width| Self(width.wish())));
        all
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
                    let mut places: Vec<Place> = (0..blocks).map(|i| Place { block: i * 31 % 1009, offset: !i }).collect();
                    prf.offsets_at(hint, &mut places);
                    for place in &places {
                        assert_eq!(place.offset, prf.offset(hint, place.block), "{name}, block {}", place.block);
                    }
                    let group = hint / lanes;
                    let extras: Vec<u32> = (0..blocks).map(|i| 1_000_000 + i).collect();
                    for offset in [0, block_size / 2, block_size - 1] {
                        let contains = (0..blocks).any(|i| prf.offset(group * lanes + i, 3) == offset);
                        let matcher = prf.matcher(7, Place { block: 3, offset });
                        assert!(!contains || prf.may_contain(&matcher, group, 3, &extras), "{name}, offset {offset}");
                        let matcher = prf.matcher(1_000_000 + blocks - 1, Place { block: 3, offset });
                        assert!(prf.may_contain(&matcher, group, 3, &extras), "{name}: the last extra entry");
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
            let close = (0..1000).filter(|chunk| prf.may_contain(&matcher, chunk * 128, 3, &extras)).count();
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
