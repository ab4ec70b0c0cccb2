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
//! differ. A server sees one pseudo-random tree and nothing of the path. The tree ends early (their optimisation of early termination): a
//! node of the last level is expanded to sixteen blocks, which, corrected once more, are the bits of 2,048 rows. They are equal at both
//! servers except in the wanted row.
//!
//! # Its price
//!
//! Two AES calls per inner node, and one per 128 rows: 2^18 rows need 2^7 last nodes, 254 + 2,048 calls. Every level that the tree ends
//! earlier takes away half of the inner nodes and doubles the last correction: here a key is 391 bytes, where ending at 256 rows would take
//! 4,094 calls and 218 bytes. (Ending at 128 rows with the node itself as the bits would give away a bit of the wanted row: one of the 128
//! bits of a node is its control bit.)
//!
//! `G` is AES-128 under two fixed keys in the mode of Matyas, Meyer and Oseas: `G(s) = (E0(s) ^ s, E1(s) ^ s)`. The control bit is
//! the lowest bit of a node's block; it is cleared before the block serves as a seed. A last node's part `j` is `G(s ^ 2 j)`: this mode is
//! correlation robust, so that seeds with known differences give unrelated blocks (Guo, Katz, Wang, Yu, S&P 2020).
//!
//! # Where the rows are
//!
//! Part 0 of all last nodes, one after the other, are the bits of the first rows, 256 for each; then come their parts 1. So all parts of
//! the same number, which share a correction, lie together and are grown like a level of the tree.

#[cfg(target_arch = "x86_64")]
mod aes_ni;
mod node;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vaes;
#[cfg(target_arch = "x86_64")]
mod vaes256;
#[cfg(target_arch = "x86_64")]
mod vaes512;

use assay_harness::Failure;
use assay_harness::path;
use assay_harness::simd::Isa;

use self::node::{CONTROL, Correction, Node, block, node};
use super::bad_key::BadKey;
use crate::matrix::ROW_GROUP;
use crate::selection::clear_beyond;

/// One server's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpfKey {
    /// Of the matrix that it is for.
    rows: usize,
    root: u128,
    /// One per level of inner nodes.
    corrections: Vec<Correction>,
    /// Those of the rows' bits, one per part of a last node.
    last: Vec<Correction>,
}

/// Parts of a last node, at most: each covers a group of rows.
const PARTS: usize = 8;

/// Shape of a tree for a number of rows.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Groups of rows.
    groups: usize,
    /// Parts of each last node.
    parts: usize,
    /// Last nodes.
    leaves: usize,
    /// Levels of inner nodes.
    levels: usize,
}

impl Shape {
    fn of(rows: usize) -> Self {
        let groups = rows.div_ceil(ROW_GROUP);
        let parts = groups.min(PARTS);
        let leaves = groups.div_ceil(parts);
        Self { groups, parts, leaves, levels: leaves.next_power_of_two().ilog2() as usize }
    }

    /// The last node and its part that have the bit of `row`.
    fn find(self, row: usize) -> (usize, usize) {
        let group = row / ROW_GROUP;
        (group % self.leaves, group / self.leaves)
    }

    /// How many nodes of a level are above existing rows; the last nodes have the level `levels`.
    fn nodes(self, level: usize) -> usize {
        self.leaves.div_ceil(1 << (self.levels - level))
    }

    /// Whether the way to a last node turns right below the node of `level`.
    fn turns_right(self, leaf: usize, level: usize) -> usize {
        leaf >> (self.levels - 1 - level) & 1
    }
}

/// The seed of a part's blocks, used in place of its node.
fn part_of(node: u128, part: usize) -> u128 {
    node ^ (part as u128) << 1
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
        let shape = Shape::of(rows);
        let (leaf, wanted_part) = shape.find(target);
        let mut nodes = roots;
        let mut corrections = Vec::with_capacity(shape.levels);
        for level in 0..shape.levels {
            let grown = nodes.map(|node| Prg::Portable.children_of(node, [0; 2]));
            let right = shape.turns_right(leaf, level);
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
        let bit = target % ROW_GROUP;
        let last = (0..shape.parts).map(|part| {
            let grown = nodes.map(|node| Prg::Portable.children_of(part_of(node, part), [0; 2]));
            std::array::from_fn(|side| {
                let wanted = part == wanted_part && bit / 128 == side;
                grown[0][side] ^ grown[1][side] ^ u128::from(wanted) << (bit % 128)
            })
        });
        let last: Vec<Correction> = last.collect();
        roots.map(|root| Self { rows, root, corrections: corrections.clone(), last: last.clone() })
    }

    /// Bytes of a key for a matrix of `rows` rows: they grow with the logarithm of the rows.
    #[must_use]
    pub fn bytes(rows: usize) -> usize {
        let Shape { levels, parts, .. } = Shape::of(rows);
        16 + 17 * levels + 32 * parts
    }

    /// AES calls that expanding a key for a matrix of `rows` rows takes.
    #[must_use]
    pub fn aes_calls(rows: usize) -> usize {
        let shape = Shape::of(rows);
        let inner: usize = (0..shape.levels).map(|level| shape.nodes(level)).sum();
        2 * (inner + shape.groups)
    }

    /// The key as it goes over the wire: the root; for each level the 127 common bits of its corrections and a byte with the two
    /// control bits; the last corrections.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.root.to_le_bytes().to_vec();
        for [left, right] in &self.corrections {
            bytes.extend((left & !CONTROL).to_le_bytes());
            bytes.push((left & CONTROL | (right & CONTROL) << 1) as u8);
        }
        bytes.extend(self.last.iter().flatten().flat_map(|block| block.to_le_bytes()));
        bytes
    }

    /// Reads a key for a matrix of `rows` rows.
    ///
    /// # Errors
    ///
    /// When its length is not that of such a key.
    pub fn from_bytes(bytes: &[u8], rows: usize) -> Result<Self, BadKey> {
        let (expected, found) = (Self::bytes(rows), bytes.len());
        if found != expected {
            return Err(BadKey { expected, found });
        }
        let block = |at: usize| u128::from_le_bytes(*bytes[at..].first_chunk().expect("a key ends with a block"));
        let Shape { levels, parts, .. } = Shape::of(rows);
        let correction = |at: usize| {
            let (common, controls) = (block(at) & !CONTROL, u128::from(bytes[at + 16]));
            [common | controls & 1, common | controls >> 1 & 1]
        };
        let corrections = (0..levels).map(|level| correction(16 + 17 * level)).collect();
        let last = (0..parts).map(|part| 16 + 17 * levels + 32 * part);
        let last = last.map(|at| [block(at), block(at + 16)]).collect();
        Ok(Self { rows, root: block(0), corrections, last })
    }

    /// The bit of one row, by walking down to it: the slow and obvious way.
    #[must_use]
    pub fn bit(&self, row: usize) -> bool {
        let shape = Shape::of(self.rows);
        let (leaf, part) = shape.find(row);
        let mut node = self.root;
        for (level, correction) in self.corrections.iter().enumerate() {
            node = Prg::Portable.children_of(node, *correction)[shape.turns_right(leaf, level)];
        }
        let blocks = Prg::Portable.children_of(part_of(node, part), self.last[part]);
        blocks[row % ROW_GROUP / 128] >> (row % 128) & 1 == 1
    }

    /// Writes the bits of the first `rows` rows.
    ///
    /// # Panics
    ///
    /// When the key is for a matrix of another size.
    pub fn expand(&self, prg: Prg, rows: usize, words: &mut [u64]) {
        assert_eq!(self.rows, rows, "the key is for another number of rows");
        let shape = Shape::of(rows);
        let words = &mut words[..rows.div_ceil(64)];
        // The children of one stretch of nodes for every level: a few kilobytes in all.
        let mut rooms = vec![[[0; 2]; 2 * STRETCH]; shape.levels];
        let mut root = [[0; 2]; STRETCH];
        root[0] = node(self.root);
        Expansion { key: self, prg, shape, words }.below(0, 0, &root, &mut rooms);
        clear_beyond(words, rows);
    }
}

/// Nodes of one level that are grown together: enough to fill the pipeline, and few enough that a stretch of every level stays in the
/// first-level cache. So the tree is grown downwards first, and then to the right.
const STRETCH: usize = 64;
/// Words of selection bits that a group of rows has.
const GROUP_WORDS: usize = ROW_GROUP / 64;

/// A key on its way to its bits.
struct Expansion<'a> {
    key: &'a DpfKey,
    prg: Prg,
    shape: Shape,
    words: &'a mut [u64],
}

impl Expansion<'_> {
    /// Writes the bits below a stretch of nodes of a level, of which the first is number `first`. `rooms` has one for each level below.
    fn below(&mut self, level: usize, first: usize, nodes: &[Node], rooms: &mut [[Node; 2 * STRETCH]]) {
        let needed = (self.shape.nodes(level) - first).min(STRETCH);
        let Some((room, rooms)) = rooms.split_first_mut() else { return self.last(first, needed, nodes) };
        self.prg.grow(nodes, needed, self.key.corrections[level], room);
        // Of every level only the nodes above existing rows.
        let children = self.shape.nodes(level + 1) - 2 * first;
        for (i, nodes) in room.chunks_exact(STRETCH).take(children.div_ceil(STRETCH)).enumerate() {
            self.below(level + 1, 2 * first + i * STRETCH, nodes, rooms);
        }
    }

    /// Writes the bits of a stretch of last nodes, part by part.
    fn last(&mut self, first: usize, needed: usize, nodes: &[Node]) {
        for (part, correction) in self.key.last.iter().enumerate() {
            let start = (part * self.shape.leaves + first) * GROUP_WORDS;
            // The last parts may lack some groups.
            let end = self.words.len().min(start + needed * GROUP_WORDS);
            let Some(words) = self.words.get_mut(start..end) else { return };
            let needed = words.len().div_ceil(GROUP_WORDS);
            let nodes: [Node; STRETCH] = std::array::from_fn(|i| node(part_of(block(nodes[i]), part)));
            // Whole vectors are written directly; a partial last one uses a buffer.
            let (blocks, _) = words.as_chunks_mut::<2>();
            if blocks.len() == 2 * needed && needed.is_multiple_of(Prg::NODES_TOUCHED / 2) {
                self.prg.grow(&nodes, needed, *correction, blocks);
            } else {
                let mut room = [[0; 2]; 2 * STRETCH];
                self.prg.grow(&nodes, needed, *correction, &mut room);
                words.copy_from_slice(&room.as_flattened()[..words.len()]);
            }
        }
    }
}

/// The generator's implementation. Variants with special instructions exist only on CPUs that have them.
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

assay_harness::choices!(Aes {
    "auto" => Auto,
    "portable" => Portable,
    "aes-ni" => AesNi,
    "vaes256" => Vaes256,
    "vaes512" => Vaes512,
});

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
    pub fn select(wish: Aes, isa: Isa) -> Result<Self, Failure> {
        match wish {
            Aes::Auto => Ok(Self::of(isa)),
            wish => path::select(wish, &Aes::CHOICES, &Self::available(), |prg| prg.name())
                .map_err(|missing| Failure::usage(format_args!("--aes: {missing}"))),
        }
    }

    /// Every generator that this CPU can compute, the narrowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
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
            // The crate's choice for single blocks.
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
        fn key_round_trips(seeds: [u128; 2], rows in 1_usize..100_000, target: prop::sample::Index) {
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
        let stretch = STRETCH * PARTS * ROW_GROUP;
        let sizes = [1, 2, 3].map(|stretches| stretches * stretch).into_iter().chain([8 * stretch]);
        for rows in sizes.flat_map(|rows| [rows - ROW_GROUP, rows - 65, rows - 1, rows, rows + 1, rows + 3 * ROW_GROUP])
        {
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
                        let text = format!("--aes: this CPU does not support {name}; supported are portable");
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
        assert_eq!(DpfKey::bytes(257), 80);
        assert_eq!(DpfKey::bytes(1 << 18), 391);
        assert_eq!([1, 256, 257, 2049, 1 << 18].map(DpfKey::aes_calls), [2, 2, 4, 20, 2302]);
        for log in 11..26 {
            assert_eq!(DpfKey::bytes(1 << (log + 1)) - DpfKey::bytes(1 << log), 17);
        }
    }

    #[test]
    fn keys_of_another_size_are_refused() {
        let key = DpfKey::pair([1, 2], 0, 1000)[0].to_bytes();
        assert_eq!(DpfKey::from_bytes(&key, 2000), Err(BadKey { expected: 272, found: 144 }));
    }
}
