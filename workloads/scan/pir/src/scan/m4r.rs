//! `fused-m4r`: one pass by the method of the four Russians.
//!
//! Four rows have only sixteen possible sums. With all sixteen in a table, a key does not mask and add four rows: it looks up one sum
//! by its four bits. The table costs eleven additions, and pays when there are many keys.
//!
//! ```text
//! for tile of rows that stays in the second-level cache, for column of one or two cache lines, for block of 4 T rows
//!     for t in 0..T: table[t] = all sums of rows 4t .. 4t + 3
//!     for key: sums[key] ^= table[0][bits 0..4] ^ table[1][bits 4..8] ^ ... ^ table[T - 1][bits 4T - 4 .. 4T]
//! ```
//!
//! 1. Tables and the sums of one column stay in the first-level cache while all blocks of a tile add to them, and so do the bits of these
//!    rows. A column's sums lie together: a row's length apart they would share a few of the cache's sets. A row is read from memory once.
//! 2. `T` look-ups are added up before a key's sum is loaded and stored, two of them per instruction where three can be XORed at once.
//! 3. The rows of the tile to come are asked for evenly over the work on this one, into the second-level cache, so that adding and reading
//!    overlap and the first level is left to the tables.
//!
//! With the keys of one query the tables do not pay.

use std::ops::Range;

use assay_harness::prefetch::{self, InOrder};
use assay_harness::simd::{Isa, Kernel, Simd};

use super::answers::{Answers, xor_into};
use super::cpu::vectors;
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
const TABLE_BYTES: usize = TABLES * SUMS * WIDEST_COLUMN;
/// Bytes of a column, at most.
const WIDEST_COLUMN: usize = 128;
/// Bytes of the narrowest column; rows are a multiple of it.
const LINE: usize = 64;
/// Bytes of a tile, whose blocks are gone over column by column; two of them fit into a second-level cache with room to spare.
const TILE_BYTES: usize = 128 << 10;

/// Adds the selected rows in `rows` to the answers, which lie one after the other.
pub fn scan(matrix: &Matrix, rows: Range<usize>, selection: &Selection, isa: Isa, answers: &mut [u8]) {
    let (row_size, keys) = (matrix.row_size(), selection.keys());
    let (vector, _) = vectors(isa);
    let column = column(vector);
    // The sums of all keys, column by column.
    let mut sums = Answers::new(keys, row_size);
    for part in matrix.parts(rows) {
        let blocks = part.bytes.len() / row_size / BLOCK_ROWS;
        let (whole, rest) = part.bytes.split_at(blocks * BLOCK_ROWS * row_size);
        let sums = sums.bytes_mut();
        isa.run(ScanBlocks { part: Part { bytes: whole, ..part }, row_size, selection, sums });
        let part = Part { first_row: part.first_row + blocks * BLOCK_ROWS, bytes: rest };
        isa.run(tiled::ScanPart { part, row_size, selection, in_order: InOrder::Software, answers });
    }
    for (i, sums) in sums.bytes().chunks(keys * column).enumerate() {
        let width = sums.len() / keys;
        for (answer, sum) in answers.chunks_exact_mut(row_size).zip(sums.chunks_exact(width)) {
            xor_into(&mut answer[i * column..][..width], sum);
        }
    }
}

/// Bytes that the method loads from the first-level cache for a matrix of `matrix_bytes`: every row once, and per key
/// the look-ups and sum of every block.
#[must_use]
pub fn bytes_loaded(matrix_bytes: u64, keys: usize) -> f64 {
    matrix_bytes as f64 * (1.0 + (keys * (TABLES + 1)) as f64 / BLOCK_ROWS as f64)
}

/// With fewer keys than this, making tables does not pay. The portable path has no registers for a table's sums, and keeps them in memory
/// while it makes them.
#[must_use]
pub fn fewest_keys(isa: Isa) -> usize {
    let (_, registers) = vectors(isa);
    if registers < SUMS { 24 } else { 4 }
}

/// Bytes of a column: with vectors of more than 16 bytes two lines, so that the work of finding a sum is shared by two, with those as much
/// as leaves the first-level cache room for the tables and the sums.
#[inline(always)]
const fn column(vector: usize) -> usize {
    if vector > 16 { WIDEST_COLUMN } else { LINE }
}

/// Whole blocks of rows.
struct ScanBlocks<'a> {
    part: Part<'a>,
    row_size: usize,
    selection: &'a Selection,
    /// Those of every key, for every column.
    sums: &'a mut [u8],
}

/// The tables, one after the other, aligned to a cache line.
#[repr(align(64))]
struct Tables([u8; TABLE_BYTES]);

impl Kernel for ScanBlocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let Self { part, row_size, selection, ref sums } = self;
        assert!(row_size.is_multiple_of(LINE) && part.bytes.len().is_multiple_of(BLOCK_ROWS * row_size));
        assert!(part.first_row.is_multiple_of(BLOCK_ROWS));
        assert!(part.first_row + part.bytes.len() / row_size <= selection.rows());
        assert_eq!(sums.len(), selection.keys() * row_size);
        let mut tables = Tables([0; TABLE_BYTES]);
        let blocks = part.bytes.len() / row_size / BLOCK_ROWS;
        let tile = (TILE_BYTES / row_size / BLOCK_ROWS).max(1);
        for first in (0..blocks).step_by(tile) {
            for at in (0..row_size).step_by(column(S::BYTES)) {
                for block in first..blocks.min(first + tile) {
                    match (row_size - at).min(column(S::BYTES)) / S::BYTES {
                        1 => self.add::<S, 1>(simd, block, at, tile, &mut tables),
                        2 => self.add::<S, 2>(simd, block, at, tile, &mut tables),
                        _ => self.add::<S, 4>(simd, block, at, tile, &mut tables),
                    }
                }
            }
        }
    }
}

impl ScanBlocks<'_> {
    /// One block of one column of `VECTORS` vectors. Rows are prefetched at a distance in blocks.
    #[inline(always)]
    fn add<S: Simd, const VECTORS: usize>(
        &mut self,
        simd: S,
        block: usize,
        at: usize,
        blocks_ahead: usize,
        tables: &mut Tables,
    ) {
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
        let sums = self.sums.as_mut_ptr().wrapping_add(at * keys);
        // This column's lines of the tile to come, shared out evenly among its blocks and their keys.
        let mut ahead = rows.wrapping_add(blocks_ahead * BLOCK_ROWS * row_size);
        let mut due = 0;
        for key in 0..keys {
            due += BLOCK_ROWS;
            while due >= keys {
                due -= keys;
                for within in (0..sum_bytes).step_by(LINE) {
                    prefetch::line_into_second_level(ahead.wrapping_add(within));
                }
                ahead = ahead.wrapping_add(row_size);
            }
            // SAFETY: see the assertion above.
            let bits = unsafe { words.wrapping_add(key * stride).read() } >> shift;
            let sum = sums.wrapping_add(key * sum_bytes);
            // SAFETY: `run` checked that every key has sums as long as a row. Those of the columns before this one take `at` bytes for
            // every key, and those of this one `sum_bytes`.
            let mut added: [S::Vector; VECTORS] =
                std::array::from_fn(|v| unsafe { simd.load(sum.wrapping_add(v * S::BYTES)) });
            for table in (0..TABLES).step_by(2) {
                let look_up = |table: usize| {
                    let sum = (bits >> (ROWS_PER_TABLE * table)) as usize % SUMS;
                    tables.wrapping_add((table * SUMS + sum) * sum_bytes)
                };
                let (one, other) = (look_up(table), look_up(table + 1));
                for (v, sum) in added.iter_mut().enumerate() {
                    let offset = v * S::BYTES;
                    // SAFETY: all tables for a column of this width fit, and were just written.
                    let (one, other) =
                        unsafe { (simd.load(one.wrapping_add(offset)), simd.load(other.wrapping_add(offset))) };
                    *sum = simd.xor3(*sum, one, other);
                }
            }
            for (v, added) in added.into_iter().enumerate() {
                // SAFETY: as for the load above.
                unsafe { simd.store(sum.wrapping_add(v * S::BYTES), added) };
            }
        }
    }
}
