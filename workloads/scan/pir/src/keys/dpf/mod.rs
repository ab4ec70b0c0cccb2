//! A distributed point function: the key of Boyle, Gilboa and Ishai (CCS 2016), evaluated on all rows at once.
//!
//! # The idea
//!
//! Each server grows a binary tree from a root seed. A node holds a 127-bit seed and a control bit; its two children come from a
//! pseudo-random generator `G`:
//!
//! ```text
//! (left, right) = G(seed)              two blocks of 128 bits
//! if control { left ^= correction.left;  right ^= correction.right }
//! ```
//!
//! The two servers start with different seeds and control bits 0 and 1. The corrections, one pair per level, are the same for both
//! and chosen so that the nodes of both servers are equal everywhere except on the path to the wanted row; there the control bits
//! differ. A server sees one pseudo-random tree and nothing of the path. The tree ends early: a node of the last level covers
//! 256 rows, and its two blocks, corrected once more, are the bits of those rows. They are equal at both servers except in the
//! wanted row.
//!
//! # Its price
//!
//! Two AES calls per node of the tree, the last level included: 2^18 rows need 2^10 last nodes, 4,094 calls. (Ending at 128 rows with
//! the node itself as the bits would take as many, but would give away a bit of the wanted row: one of the 128 bits of a node is its
//! control bit. Converting the nodes of such a tree properly would take 6,142.)
//!
//! `G` is AES-128 under two fixed keys in the mode of Matyas, Meyer and Oseas: `G(s) = (E0(s) ^ s, E1(s) ^ s)`. The control bit is
//! the lowest bit of a node's block; it is cleared before the block serves as a seed.

#[cfg(target_arch = "x86_64")]
mod aes_ni;
mod node;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vaes256;
#[cfg(target_arch = "x86_64")]
mod vaes512;

use std::fmt;

use assay_harness::Failure;
use assay_harness::path::{self, Unavailable};
use assay_harness::simd::Isa;

use self::node::{CONTROL, Correction, Node, block, node};
use super::bad_key::BadKey;
use crate::matrix::ROW_GROUP;
use crate::selection::clear_beyond;

/// One server's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpfKey {
    root: u128,
    /// One per level; the last one corrects the rows' bits.
    corrections: Vec<Correction>,
}

impl DpfKey {
    /// The two servers' keys for the row `target` of a matrix of `rows` rows, grown from two secret seeds.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    #[must_use]
    pub fn pair(seeds: [u128; 2], target: usize, rows: usize) -> [Self; 2] {
        assert!(target < rows, "there is no row {target} in {rows}");
        let roots = [seeds[0] & !CONTROL, seeds[1] | CONTROL];
        let levels = inner_levels(rows);
        let mut nodes = roots;
        let mut corrections = Vec::with_capacity(levels + 1);
        for level in 0..levels {
            let grown = nodes.map(|node| Prg::Portable.children_of(node, [0; 2]));
            let right = target >> (levels - 1 - level + ROW_GROUP.ilog2() as usize) & 1;
            // Off the path both servers shall hold the same node; on it, different control bits.
            let lost = grown[0][1 - right] ^ grown[1][1 - right];
            let correction: Correction = std::array::from_fn(|side| {
                let control = (grown[0][side] ^ grown[1][side] ^ u128::from(side == right)) & CONTROL;
                lost & !CONTROL | control
            });
            for (node, children) in nodes.iter_mut().zip(grown) {
                *node = children[right] ^ if *node & CONTROL == 1 { correction[right] } else { 0 };
            }
            corrections.push(correction);
        }
        let grown = nodes.map(|node| Prg::Portable.children_of(node, [0; 2]));
        let bit = target % ROW_GROUP;
        corrections.push(std::array::from_fn(|side| {
            let wanted = if bit / 128 == side { 1 << (bit % 128) } else { 0 };
            grown[0][side] ^ grown[1][side] ^ wanted
        }));
        roots.map(|root| Self { root, corrections: corrections.clone() })
    }

    /// Bytes of a key for a matrix of `rows` rows: they grow with the logarithm of the rows.
    #[must_use]
    pub fn bytes(rows: usize) -> usize {
        16 + 17 * inner_levels(rows) + 32
    }

    /// AES calls that expanding a key for a matrix of `rows` rows takes: two for every node above existing rows.
    #[must_use]
    pub fn aes_calls(rows: usize) -> usize {
        let leaves = rows.div_ceil(ROW_GROUP);
        (0..=inner_levels(rows)).map(|above| 2 * leaves.div_ceil(1 << above)).sum()
    }

    /// The key as it goes over the wire: the root; for each level the 127 common bits of its corrections and a byte with the two
    /// control bits; the last correction.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.root.to_le_bytes().to_vec();
        let (last, inner) = self.corrections.split_last().expect("a key has a last correction");
        for [left, right] in inner {
            bytes.extend((left & !CONTROL).to_le_bytes());
            bytes.push((left & CONTROL | (right & CONTROL) << 1) as u8);
        }
        bytes.extend(last.iter().flat_map(|block| block.to_le_bytes()));
        bytes
    }

    /// Reads a key for a matrix of `rows` rows.
    ///
    /// # Errors
    ///
    /// When its length is not that of such a key.
    pub fn from_bytes(bytes: &[u8], rows: usize) -> Result<Self, BadKey> {
        let bad = || BadKey { expected: Self::bytes(rows), found: bytes.len() };
        if bytes.len() != Self::bytes(rows) {
            return Err(bad());
        }
        let block = |at: usize| {
            let block = bytes[at..].first_chunk().ok_or_else(bad)?;
            Ok(u128::from_le_bytes(*block))
        };
        let levels = inner_levels(rows);
        let mut corrections = Vec::with_capacity(levels + 1);
        for level in 0..levels {
            let at = 16 + 17 * level;
            let (common, controls) = (block(at)? & !CONTROL, u128::from(bytes[at + 16]));
            corrections.push([common | controls & 1, common | controls >> 1 & 1]);
        }
        corrections.push([block(16 + 17 * levels)?, block(32 + 17 * levels)?]);
        Ok(Self { root: block(0)?, corrections })
    }

    /// The bit of one row, by walking down to it: the slow and obvious way.
    #[must_use]
    pub fn bit(&self, row: usize) -> bool {
        let levels = self.corrections.len() - 1;
        let mut node = self.root;
        for (level, correction) in self.corrections[..levels].iter().enumerate() {
            let right = row >> (levels - 1 - level + ROW_GROUP.ilog2() as usize) & 1;
            node = Prg::Portable.children_of(node, *correction)[right];
        }
        let blocks = Prg::Portable.children_of(node, self.corrections[levels]);
        blocks[row % ROW_GROUP / 128] >> (row % 128) & 1 == 1
    }

    /// Writes the bits of the first `rows` rows.
    ///
    /// # Panics
    ///
    /// When the key is for a matrix of another size.
    pub fn expand(&self, prg: Prg, rows: usize, words: &mut [u64]) {
        assert_eq!(self.corrections.len(), inner_levels(rows) + 1, "the key is for another number of rows");
        let words = &mut words[..rows.div_ceil(64)];
        // The children of one stretch of nodes for every level: a few kilobytes in all.
        let mut rooms = vec![[[0; 2]; 2 * STRETCH]; self.corrections.len()];
        let mut root = [[0; 2]; STRETCH];
        root[0] = node(self.root);
        grow_below(prg, &self.corrections, &root, &mut rooms, words);
        clear_beyond(words, rows);
    }
}

/// Nodes of one level that are grown together: enough to fill the pipeline, and few enough that a stretch of every level stays in the
/// first-level cache. So the tree is grown downwards first, and then to the right.
const STRETCH: usize = 64;
/// Words that the children of a node of the last level are.
const LEAF_WORDS: usize = ROW_GROUP / 64;

/// Writes the bits below the first of `nodes`, as many as `words` has. `corrections` are those of their level and the levels below, and
/// `rooms` has one for each.
fn grow_below(
    prg: Prg,
    corrections: &[Correction],
    nodes: &[Node],
    rooms: &mut [[Node; 2 * STRETCH]],
    words: &mut [u64],
) {
    let ([correction, below @ ..], [room, rooms @ ..]) = (corrections, rooms) else { return };
    // Of every level only the nodes above existing rows.
    let leaves = words.len().div_ceil(LEAF_WORDS);
    let needed = leaves.div_ceil(1 << below.len());
    if below.is_empty() {
        // Whole vectors go where they belong; what would reach beyond the last word takes a detour.
        let (blocks, _) = words.as_chunks_mut::<2>();
        if blocks.len() == 2 * needed && needed.is_multiple_of(Prg::NODES_TOUCHED / 2) {
            return prg.grow(nodes, needed, *correction, blocks);
        }
        prg.grow(nodes, needed, *correction, room);
        words.copy_from_slice(&room.as_flattened()[..words.len()]);
        return;
    }
    prg.grow(nodes, needed, *correction, room);
    let stretch_words = STRETCH * LEAF_WORDS << (below.len() - 1);
    for (nodes, words) in room.chunks_exact(STRETCH).zip(words.chunks_mut(stretch_words)) {
        grow_below(prg, below, nodes, rooms, words);
    }
}

/// Levels of the tree above the last, whose nodes cover a group of rows each.
fn inner_levels(rows: usize) -> usize {
    rows.div_ceil(ROW_GROUP).next_power_of_two().ilog2() as usize
}

/// The generator, as this CPU can compute it. The variants with instructions of their own can only be made where those are.
#[derive(Debug, Clone, Copy)]
pub enum Prg {
    /// The `aes` crate, which brings its own detection.
    Portable,
    /// One block per instruction.
    #[cfg(target_arch = "x86_64")]
    AesNi(aes_ni::AesNi),
    /// Two blocks per instruction.
    #[cfg(target_arch = "x86_64")]
    Vaes256(vaes256::Vaes256),
    /// Four blocks per instruction.
    #[cfg(target_arch = "x86_64")]
    Vaes512(vaes512::Vaes512),
}

/// A wish for a way to compute the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aes {
    /// The one that goes with the instruction set of everything else.
    Auto,
    /// The `aes` crate.
    Portable,
    /// AES-NI.
    AesNi,
    /// VAES on 256-bit vectors.
    Vaes256,
    /// VAES on 512-bit vectors.
    Vaes512,
}

impl Aes {
    /// Every wish, by the name it has on a command line.
    pub const CHOICES: [(&'static str, Self); 5] = [
        ("auto", Self::Auto),
        ("portable", Self::Portable),
        ("aes-ni", Self::AesNi),
        ("vaes256", Self::Vaes256),
        ("vaes512", Self::Vaes512),
    ];
}

/// The CPU does not have the way to compute AES that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchAes(Unavailable);

impl fmt::Display for NoSuchAes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--aes: {}", self.0)
    }
}

impl std::error::Error for NoSuchAes {}

impl From<NoSuchAes> for Failure {
    fn from(missing: NoSuchAes) -> Self {
        Self::usage(missing)
    }
}

impl Prg {
    /// [`grow`](Self::grow) may read and write nodes up to the next multiple of this.
    const NODES_TOUCHED: usize = 8;

    /// The generator that goes with an instruction set.
    #[must_use]
    pub fn of(isa: Isa) -> Self {
        let all = Self::available();
        let widest = match isa.name() {
            "avx512" => "vaes512",
            "avx2" => "vaes256",
            _ => "portable",
        };
        // A CPU may have vectors and lack AES in them; then the next narrower one does.
        let up_to = all.iter().position(|prg| prg.name() == widest).unwrap_or(all.len() - 1);
        all[up_to]
    }

    /// The generator that `wish` asks for, where everything else uses the instructions of `isa`.
    ///
    /// # Errors
    ///
    /// When the CPU does not have it.
    pub fn select(wish: Aes, isa: Isa) -> Result<Self, NoSuchAes> {
        match wish {
            Aes::Auto => Ok(Self::of(isa)),
            wish => path::select(wish, &Aes::CHOICES, &Self::available(), |prg| prg.name()).map_err(NoSuchAes),
        }
    }

    /// Every generator that this CPU can compute, the narrowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        all.extend(aes_ni::AesNi::detect().map(Self::AesNi));
        #[cfg(target_arch = "x86_64")]
        all.extend(vaes256::Vaes256::detect().map(Self::Vaes256));
        #[cfg(target_arch = "x86_64")]
        all.extend(vaes512::Vaes512::detect().map(Self::Vaes512));
        all
    }

    /// Its name in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(_) => "aes-ni",
            #[cfg(target_arch = "x86_64")]
            Self::Vaes256(_) => "vaes256",
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512(_) => "vaes512",
        }
    }

    /// The AES instructions that it comes down to.
    #[must_use]
    pub fn instructions(self) -> &'static str {
        match self {
            // What the crate finds for a block at a time.
            Self::Portable => "aes-ni",
            #[cfg(target_arch = "x86_64")]
            wide => wide.name(),
        }
    }

    /// Writes the corrected children of the first `count` nodes, left and right in turn.
    fn grow(self, nodes: &[Node], count: usize, correction: Correction, children: &mut [Node]) {
        let touched = count.next_multiple_of(Self::NODES_TOUCHED / 2);
        assert!(nodes.len() >= touched && children.len() >= 2 * touched, "there is no room for whole vectors");
        match self {
            Self::Portable => portable::grow(&nodes[..count], correction, children),
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(aes) => aes.grow(&nodes[..touched], correction, children),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes256(aes) => aes.grow(&nodes[..touched], correction, children),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512(aes) => aes.grow(&nodes[..touched], correction, children),
        }
    }

    /// The corrected children of one node.
    fn children_of(self, parent: u128, correction: Correction) -> [u128; 2] {
        let mut children = [[0; 2]; Self::NODES_TOUCHED];
        self.grow(&[node(parent), [0; 2], [0; 2], [0; 2]], 1, correction, &mut children);
        [block(children[0]), block(children[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expand(key: &DpfKey, prg: Prg, rows: usize) -> Vec<u64> {
        let mut words = vec![u64::MAX; rows.div_ceil(64)];
        key.expand(prg, rows, &mut words);
        words
    }

    fn bit(words: &[u64], row: usize) -> bool {
        words[row / 64] >> (row % 64) & 1 == 1
    }

    proptest! {
        #[test]
        fn the_two_servers_bits_differ_in_the_wanted_row_only(seeds: [u128; 2], rows in 1_usize..5000, target: prop::sample::Index) {
            let target = target.index(rows);
            let pair = DpfKey::pair(seeds, target, rows);
            for prg in Prg::available() {
                let [a, b] = [&pair[0], &pair[1]].map(|key| expand(key, prg, rows));
                for row in 0..a.len() * 64 {
                    prop_assert_eq!(bit(&a, row) != bit(&b, row), row == target, "{} row {}", prg.name(), row);
                }
            }
        }

        #[test]
        fn every_generator_agrees_with_the_walk_to_one_row(seeds: [u128; 2], rows in 1_usize..3000, target: prop::sample::Index) {
            let key = &DpfKey::pair(seeds, target.index(rows), rows)[1];
            for prg in Prg::available() {
                let words = expand(key, prg, rows);
                for row in (0..rows).step_by(37).chain([rows - 1]) {
                    prop_assert_eq!(bit(&words, row), key.bit(row), "{} row {}", prg.name(), row);
                }
            }
        }

        #[test]
        fn a_key_survives_the_wire(seeds: [u128; 2], rows in 1_usize..100_000, target: prop::sample::Index) {
            for key in DpfKey::pair(seeds, target.index(rows), rows) {
                let bytes = key.to_bytes();
                prop_assert_eq!(bytes.len(), DpfKey::bytes(rows));
                prop_assert_eq!(DpfKey::from_bytes(&bytes, rows), Ok(key));
            }
        }
    }

    /// Row counts around a stretch of nodes and the levels above it, and more than a stretch of stretches.
    #[test]
    fn every_generator_agrees_with_the_reference_around_stretches() {
        let stretch = STRETCH * ROW_GROUP;
        let sizes = [1, 2, 3].map(|stretches| stretches * stretch).into_iter().chain([64 * stretch]);
        for rows in sizes.flat_map(|rows| [rows - ROW_GROUP, rows - 65, rows - 1, rows, rows + 1, rows + 3 * ROW_GROUP]) {
            let key = &DpfKey::pair([rows as u128, 7], rows / 3, rows)[0];
            let expected = expand(key, Prg::Portable, rows);
            for row in [0, rows / 3, rows - 1] {
                assert_eq!(bit(&expected, row), key.bit(row), "row {row} of {rows}");
            }
            for prg in Prg::available() {
                assert_eq!(expand(key, prg, rows), expected, "{} of {rows} rows", prg.name());
            }
        }
    }

    #[test]
    fn every_generator_can_be_forced_and_one_that_is_not_there_is_refused() {
        for isa in Isa::available() {
            for (name, wish) in Aes::CHOICES.into_iter().skip(1) {
                match Prg::select(wish, isa) {
                    Ok(prg) => assert_eq!(prg.name(), name),
                    Err(error) => {
                        assert!(Prg::available().iter().all(|prg| prg.name() != name));
                        let text = format!("--aes: this CPU does not have {name}; it has portable");
                        assert!(error.to_string().starts_with(&text), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn half_of_the_rows_are_selected_within_four_sigma() {
        let rows = 1 << 18;
        for seed in 0..8_u128 {
            let key = &DpfKey::pair([seed << 64, !seed], 12345, rows)[(seed & 1) as usize];
            let words = expand(key, Prg::available()[Prg::available().len() - 1], rows);
            let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
            let sigma = (rows as f64 / 4.0).sqrt();
            let off = (f64::from(ones) - rows as f64 / 2.0).abs();
            assert!(off <= 4.0 * sigma, "{ones} of {rows} bits are set, {:.1} sigma off", off / sigma);
        }
    }

    #[test]
    fn no_bit_position_of_a_leaf_is_fixed() {
        let rows = 1 << 18;
        let words = expand(&DpfKey::pair([1, 2], 0, rows)[0], Prg::Portable, rows);
        for position in 0..ROW_GROUP {
            let ones = (0..rows / ROW_GROUP).filter(|leaf| bit(&words, leaf * ROW_GROUP + position)).count();
            assert!((380..=644).contains(&ones), "bit {position} is set in {ones} of 1024 leaves");
        }
    }

    #[test]
    fn keys_grow_with_the_logarithm_of_the_rows() {
        assert_eq!(DpfKey::bytes(256), 48);
        assert_eq!(DpfKey::bytes(257), 65);
        assert_eq!(DpfKey::bytes(1 << 18), 218);
        assert_eq!([1, 256, 257, 1 << 18].map(DpfKey::aes_calls), [2, 2, 6, 4094]);
        for log in 8..26 {
            assert_eq!(DpfKey::bytes(1 << (log + 1)) - DpfKey::bytes(1 << log), 17);
        }
    }

    #[test]
    fn keys_of_another_size_are_refused() {
        let key = DpfKey::pair([1, 2], 0, 1000)[0].to_bytes();
        assert_eq!(DpfKey::from_bytes(&key, 2000), Err(BadKey { expected: 99, found: 82 }));
    }
}
