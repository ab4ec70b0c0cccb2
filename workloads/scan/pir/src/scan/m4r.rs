//! `fused-m4r`: one pass by the method of the four Russians.
//!
//! Four rows have only sixteen possible sums. With all sixteen in a table, a key does not mask and add four rows: it looks up one sum
//! by its four bits. The table costs eleven additions, and pays when there are many keys.
//!
//! ```text
//! for block of 4 T rows
//!     for t in 0..T: table[t] = all sums of rows 4t .. 4t + 3
//!     for key: sums[key] ^= table[0][bits 0..4] ^ table[1][bits 4..8] ^ ... ^ table[T - 1][bits 4T - 4 .. 4T]
//! ```
//!
//! 1. Tables and the sums of all keys stay in the first-level cache; a row is read from memory once, and never again.
//! 2. `T` look-ups are added up before a key's sum is loaded and stored, two of them per instruction where three can be XORed at once.
//! 3. The rows of a block to come are asked for evenly over the work on this one, so that adding and reading overlap.
//!
//! With few keys the tables do not pay: then this is [`tiled`], and a batch of one query is not slower for being a batch.

use std::ops::Range;

use assay_harness::simd::{Isa, Kernel, Simd};

use super::tiled;
use crate::matrix::{Matrix, Part};
use crate::selection::Selection;

/// Rows that one table holds the sums of.
const ROWS_PER_TABLE: usize = 4;
/// Sums in a table.
const SUMS: usize = 1 << ROWS_PER_TABLE;
/// Tables of a block.
const TABLES: usize = 8;
/// Rows of a block.
const BLOCK_ROWS: usize = TABLES * ROWS_PER_TABLE;
/// Bytes of all tables for one column, at most.
const TABLE_BYTES: usize = TABLES * SUMS * COLUMN;
/// Bytes of a column, at most.
const COLUMN: usize = 128;
/// How many blocks ahead rows are asked for.
const BLOCKS_AHEAD: usize = 2;
/// With fewer keys than this, masking and adding is faster than making tables.
pub const FEWEST_KEYS: usize = 12;

/// Adds the selected rows in `rows` to the answers, which lie one after the other.
pub fn scan(matrix: &Matrix, rows: Range<usize>, selection: &Selection, isa: Isa, answers: &mut [u8]) {
    if selection.keys() < FEWEST_KEYS {
        return tiled::scan(matrix, rows, selection, isa, answers);
    }
    let row_size = matrix.row_size();
    for part in matrix.parts(rows) {
        let blocks = part.bytes.len() / row_size / BLOCK_ROWS;
        let (whole, rest) = part.bytes.split_at(blocks * BLOCK_ROWS * row_size);
        isa.run(ScanBlocks { part: Part { bytes: whole, ..part }, row_size, selection, answers });
        let part = Part { first_row: part.first_row + blocks * BLOCK_ROWS, bytes: rest };
        isa.run(tiled::ScanPart { part, row_size, selection, answers });
    }
}

/// Whole blocks of rows.
struct ScanBlocks<'a> {
    part: Part<'a>,
    row_size: usize,
    selection: &'a Selection,
    answers: &'a mut [u8],
}

/// The tables, one after the other, aligned to a cache line.
#[repr(align(64))]
struct Tables([u8; TABLE_BYTES]);

impl Kernel for ScanBlocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let Self { part, row_size, selection, ref answers } = self;
        assert!(row_size.is_multiple_of(64) && part.bytes.len().is_multiple_of(BLOCK_ROWS * row_size));
        assert!(part.first_row.is_multiple_of(BLOCK_ROWS));
        assert!(part.first_row + part.bytes.len() / row_size <= selection.rows());
        assert_eq!(answers.len(), selection.keys() * row_size);
        let mut tables = Tables([0; TABLE_BYTES]);
        for block in 0..part.bytes.len() / row_size / BLOCK_ROWS {
            let mut at = 0;
            while at < row_size {
                if row_size - at >= COLUMN {
                    match S::BYTES {
                        64 => self.add::<S, 2>(simd, block, at, &mut tables),
                        16 => self.add::<S, 8>(simd, block, at, &mut tables),
                        _ => self.add::<S, 4>(simd, block, at, &mut tables),
                    }
                    at += COLUMN;
                } else {
                    self.add::<S, 1>(simd, block, at, &mut tables);
                    at += S::BYTES;
                }
            }
        }
    }
}

impl ScanBlocks<'_> {
    /// One block, one column of `VECTORS` vectors.
    #[inline(always)]
    fn add<S: Simd, const VECTORS: usize>(&mut self, simd: S, block: usize, at: usize, tables: &mut Tables) {
        let (row_size, first_row) = (self.row_size, self.part.first_row + block * BLOCK_ROWS);
        let rows = self.part.bytes.as_ptr().wrapping_add(block * BLOCK_ROWS * row_size + at);
        let tables = tables.0.as_mut_ptr();
        let sum_bytes = VECTORS * S::BYTES;
        debug_assert!(at + sum_bytes <= row_size && TABLES * SUMS * sum_bytes <= TABLE_BYTES);

        for table in 0..TABLES {
            let to = tables.wrapping_add(table * SUMS * sum_bytes);
            for v in 0..VECTORS {
                let offset = v * S::BYTES;
                let row = |i: usize| {
                    let row = rows.wrapping_add((table * ROWS_PER_TABLE + i) * row_size + offset);
                    // SAFETY: `run` checked that all of the block's rows are there, and the column lies within a row.
                    unsafe { simd.load(row) }
                };
                let mut sums = [simd.zero(); SUMS];
                for i in 0..ROWS_PER_TABLE {
                    let row = row(i);
                    for sum in 0..1 << i {
                        sums[sum | 1 << i] = simd.xor(sums[sum], row);
                    }
                }
                for (i, sum) in sums.into_iter().enumerate() {
                    // SAFETY: all tables for a column of this width fit, see the assertion above.
                    unsafe { simd.store(to.wrapping_add(i * sum_bytes + offset), sum) };
                }
            }
        }

        let keys = self.selection.keys();
        let (words, stride) = self.selection.words();
        // This block's bits are 32 of a word, in the same place for every key; `run` checked that all keys have them.
        debug_assert!((keys - 1) * stride + first_row / 64 < words.len());
        let words = words.as_ptr().wrapping_add(first_row / 64);
        let shift = first_row % 64;
        let answers = self.answers.as_mut_ptr().wrapping_add(at);
        // This column's lines of the block to come, shared out evenly among the keys.
        let mut ahead = rows.wrapping_add(BLOCKS_AHEAD * BLOCK_ROWS * row_size);
        let mut due = 0;
        for key in 0..keys {
            due += BLOCK_ROWS;
            while due >= keys {
                due -= keys;
                for within in (0..sum_bytes).step_by(64) {
                    simd.prefetch(ahead.wrapping_add(within));
                }
                ahead = ahead.wrapping_add(row_size);
            }
            // SAFETY: see the assertion above.
            let bits = unsafe { words.wrapping_add(key * stride).read() } >> shift;
            let answer = answers.wrapping_add(key * row_size);
            // SAFETY: `run` checked that every key has an answer as long as a row, and the column lies within a row.
            let mut sums: [S::Vector; VECTORS] =
                std::array::from_fn(|v| unsafe { simd.load(answer.wrapping_add(v * S::BYTES)) });
            for table in (0..TABLES).step_by(2) {
                let look_up = |table: usize| {
                    let sum = (bits >> (ROWS_PER_TABLE * table)) as usize % SUMS;
                    tables.wrapping_add((table * SUMS + sum) * sum_bytes)
                };
                let (one, other) = (look_up(table), look_up(table + 1));
                for (v, sum) in sums.iter_mut().enumerate() {
                    let offset = v * S::BYTES;
                    // SAFETY: all tables for a column of this width fit, and were just written.
                    let (one, other) =
                        unsafe { (simd.load(one.wrapping_add(offset)), simd.load(other.wrapping_add(offset))) };
                    *sum = simd.xor3(*sum, one, other);
                }
            }
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: as for the load above.
                unsafe { simd.store(answer.wrapping_add(v * S::BYTES), sum) };
            }
        }
    }
}
