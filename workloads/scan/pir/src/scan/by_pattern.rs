//! Few keys: a row is added once, wherever it is needed.
//!
//! Three keys give every row one of eight patterns of bits. With a sum for each pattern a row is added to one sum instead of being masked
//! and added to three, and in the end a key's answer is the sum of the patterns in which its bit is one. It is the method of the four
//! Russians the other way round: [`m4r`](super::m4r) makes the sums of four rows beforehand and every key looks one up, here the sums are
//! of keys and every row looks one up.
//!
//! ```text
//! for block of 64 rows, for group of three keys
//!     for row in block: sums[pattern of the three bits] ^= row
//! for key, for pattern with the key's bit: answers[key] ^= sums[pattern]
//! ```
//!
//! 1. A vector of a row costs a load, an addition and a store, however many of the group's keys select it, and no masks are made.
//! 2. Rows come in the order of memory, whole, as fast as plain reading. Their parts by turns, whose sums stay in the first-level cache,
//!    would take twice the time: no prefetcher follows them.
//! 3. Rows of the same pattern wait for each other's sums, so short rows take turns between several sets of them.
//!
//! It is the way of few keys, but where a masked addition takes one instruction and [`tiled`](super::tiled) reads whole rows as well: that
//! is as fast without stores.

use std::ops::Range;

use assay_harness::prefetch::InOrder;
use assay_harness::simd::{Kernel, Simd};

use super::answers::{Answers, xor_into};
use super::cpu::Cpu;
use super::tiled::NEVER;
use crate::matrix::{Matrix, Part};
use crate::selection::Selection;

/// Keys of a group.
const KEYS: usize = 3;
/// Patterns of their bits.
const PATTERNS: usize = 1 << KEYS;
/// Rows of a block: one word of selection bits.
const BLOCK_ROWS: usize = 64;
/// Bytes that the sets of a pattern's sums have together, at least.
const SETS_BYTES: usize = 512;
/// How far ahead a group that is alone asks for rows, in bytes.
const AHEAD_ALONE: usize = 8 << 10;

/// Bytes that the method loads from the first-level cache for a matrix of `matrix_bytes`: per group every row and a sum
/// for it.
#[must_use]
pub fn bytes_loaded(matrix_bytes: u64, keys: usize) -> f64 {
    2.0 * matrix_bytes as f64 * keys.div_ceil(KEYS) as f64
}

/// Adds the selected rows in `rows` to the answers, which lie one after the other.
pub fn scan(matrix: &Matrix, rows: Range<usize>, selection: &Selection, cpu: Cpu, answers: &mut [u8]) {
    let row_size = matrix.row_size();
    let sets = (SETS_BYTES / row_size).clamp(1, BLOCK_ROWS);
    let groups = selection.keys().div_ceil(KEYS);
    let mut sums = Answers::new(groups * sets * PATTERNS, row_size);
    for part in matrix.parts(rows) {
        cpu.isa.run(ScanPart { part, row_size, selection, in_order: cpu.in_order, sets, sums: sums.bytes_mut() });
    }
    for (group, sums) in sums.bytes().chunks_exact(sets * PATTERNS * row_size).enumerate() {
        let keys = group * KEYS..selection.keys().min((group + 1) * KEYS);
        let answers = answers[keys.start * row_size..keys.end * row_size].chunks_exact_mut(row_size);
        for (bit, answer) in answers.enumerate() {
            let selected = sums.chunks_exact(row_size).enumerate().filter(|(i, _)| (i % PATTERNS) >> bit & 1 == 1);
            selected.for_each(|(_, sum)| xor_into(answer, sum));
        }
    }
}

/// The rows of one part of the matrix.
struct ScanPart<'a> {
    part: Part<'a>,
    row_size: usize,
    selection: &'a Selection,
    in_order: InOrder,
    /// How many sets of sums take turns.
    sets: usize,
    /// Those of every group, set and pattern.
    sums: &'a mut [u8],
}

impl Kernel for ScanPart<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { part, row_size, selection, in_order, sets, sums } = self;
        let groups = selection.keys().div_ceil(KEYS);
        assert!(row_size.is_multiple_of(64) && part.bytes.len().is_multiple_of(row_size));
        assert!(part.first_row.is_multiple_of(BLOCK_ROWS) && sets.is_power_of_two());
        assert!(part.first_row + part.bytes.len() / row_size <= selection.rows());
        assert_eq!(sums.len(), groups * sets * PATTERNS * row_size);
        for (block, rows) in part.bytes.chunks(BLOCK_ROWS * row_size).enumerate() {
            let word = part.first_row / BLOCK_ROWS + block;
            for (group, sums) in sums.chunks_exact_mut(sets * PATTERNS * row_size).enumerate() {
                let bits = std::array::from_fn(|k| {
                    let key = group * KEYS + k;
                    if key < selection.keys() { selection.key(key)[word] } else { 0 }
                });
                let ahead = match groups {
                    1 if in_order == InOrder::Hardware => Ahead { bytes: 0, every: 1, turn: NEVER },
                    1 => Ahead { bytes: AHEAD_ALONE, every: 1, turn: 0 },
                    _ => Ahead { bytes: rows.len(), every: groups, turn: group },
                };
                let block = Block { rows, row_size, bits, sets, ahead };
                if row_size.is_multiple_of(4 * 64) {
                    block.add::<S, { 4 * 64 }>(simd, sums);
                } else {
                    block.add::<S, 64>(simd, sums);
                }
            }
        }
    }
}

/// Up to 64 rows, and the bits of one group for them.
struct Block<'a> {
    rows: &'a [u8],
    row_size: usize,
    bits: [u64; KEYS],
    sets: usize,
    ahead: Ahead,
}

/// Prefetch schedule: a group's share of the rows at a distance in bytes.
#[derive(Clone, Copy)]
struct Ahead {
    bytes: usize,
    every: usize,
    turn: usize,
}

impl Block<'_> {
    /// Adds the rows to the sums of their patterns, `STEP` bytes at a time.
    #[inline(always)]
    fn add<S: Simd, const STEP: usize>(&self, simd: S, sums: &mut [u8]) {
        let Self { rows, row_size, bits, sets, ahead } = *self;
        assert!(row_size.is_multiple_of(STEP) && STEP.is_multiple_of(64));
        assert_eq!(sums.len(), sets * PATTERNS * row_size);
        let sums = sums.as_mut_ptr();
        let mut turns = ahead.turn;
        for row in 0..rows.len() / row_size {
            let pattern = (0..KEYS).fold(0, |pattern, k| pattern | (bits[k] >> row & 1) << k) as usize;
            let from = rows.as_ptr().wrapping_add(row * row_size);
            let to = sums.wrapping_add(((row & (sets - 1)) * PATTERNS + pattern) * row_size);
            let asks = turns == 0;
            turns = if asks { ahead.every - 1 } else { turns - 1 };
            let mut within = 0;
            while within < row_size {
                if asks {
                    for line in 0..STEP / 64 {
                        simd.prefetch(from.wrapping_add(ahead.bytes + within + 64 * line));
                    }
                }
                for v in 0..STEP / S::BYTES {
                    let at = within + v * S::BYTES;
                    // SAFETY: the row is one of the block's and `at` lies within it; the set is less than `sets` and the pattern
                    // less than PATTERNS, so their sum lies within `sums`, see the assertions.
                    unsafe {
                        let sum = to.wrapping_add(at);
                        simd.store(sum, simd.xor(simd.load(sum), simd.load(from.wrapping_add(at))));
                    }
                }
                within += STEP;
            }
        }
    }
}
