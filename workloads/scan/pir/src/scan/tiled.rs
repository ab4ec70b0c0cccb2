//! `fused-tiled`: one pass, the sums in registers.
//!
//! ```text
//! for tile of rows that stays in the second-level cache
//!     for group of keys, for column of a few vectors
//!         sums = one register per key and vector
//!         for row in tile: for key: sums[key] ^= row[column] where the key's bit is one
//! ```
//!
//! 1. The bits are expanded beforehand; a mask is one bit of a word in a register.
//! 2. A row's column is loaded once per group of keys, and each of its vectors costs one instruction per key.
//! 3. A tile comes from memory once: its lines are asked for evenly over the work on the tile before.

use std::ops::Range;

use assay_harness::prefetch::InOrder;
use assay_harness::simd::{Isa, Kernel, Simd};

use super::cpu::{Cpu, vectors};
use crate::matrix::{Matrix, Part};
use crate::selection::Selection;

/// Bytes of a tile; two of them fit into a second-level cache of 512 KiB with room to spare.
const TILE_BYTES: usize = 128 << 10;
/// Bytes of a tile for a group that is alone: nothing of it is read again, and two of them fit into a first-level cache.
const TILE_BYTES_ALONE: usize = 16 << 10;

/// Keys per group and vectors per column on CPUs with line-wide vectors and mask registers.
const WIDE: (usize, usize) = (6, 4);

/// How far ahead a group that is alone asks for rows, in bytes, where it reads them whole.
const AHEAD_ALONE: usize = 8 << 10;

/// Turns after which a group that never asks for rows would.
pub(super) const NEVER: usize = usize::MAX;

/// Reports whether rows of this size are read completely by one group for all keys, with one instruction per vector and
/// key. Memory is then read in order, and no method is faster.
#[must_use]
pub fn reads_in_order(isa: Isa, keys: usize, row_size: usize) -> bool {
    let (vector, _) = vectors(isa);
    vector == 64 && keys <= WIDE.0 && [64, WIDE.1 * 64].contains(&row_size)
}

/// Adds the selected rows in `rows` to the answers, which lie one after the other.
pub fn scan(matrix: &Matrix, rows: Range<usize>, selection: &Selection, cpu: Cpu, answers: &mut [u8]) {
    let row_size = matrix.row_size();
    let in_order = if reads_in_order(cpu.isa, selection.keys(), row_size) { cpu.in_order } else { InOrder::Software };
    for part in matrix.parts(rows) {
        cpu.isa.run(ScanPart { part, row_size, selection, in_order, answers });
    }
}

/// The rows of one part of the matrix, or the remainder of another strategy.
pub(super) struct ScanPart<'a> {
    /// The rows. Here they may start anywhere.
    pub(super) part: Part<'a>,
    pub(super) row_size: usize,
    pub(super) selection: &'a Selection,
    pub(super) in_order: InOrder,
    pub(super) answers: &'a mut [u8],
}

impl Kernel for ScanPart<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { part, row_size, selection, ref answers, .. } = self;
        assert!(row_size.is_multiple_of(64) && part.bytes.len().is_multiple_of(row_size));
        assert!(part.first_row + part.bytes.len() / row_size <= selection.rows());
        assert_eq!(answers.len(), selection.keys() * row_size);
        // As many sums as registers allow, beside a row's column and the masks. One query has three keys: fewer in a group would read every
        // row twice.
        match S::REGISTERS {
            32 if S::BYTES == 64 => self.add_tiles::<S, { WIDE.0 }, { WIDE.1 }>(simd),
            32 => self.add_tiles::<S, 4, 4>(simd),
            16 => self.add_tiles::<S, 3, 2>(simd),
            _ => self.add_tiles::<S, 3, 1>(simd),
        }
    }
}

impl ScanPart<'_> {
    /// All rows, by groups of `KEYS` keys and columns of `VECTORS` vectors.
    #[inline(always)]
    fn add_tiles<S: Simd, const KEYS: usize, const VECTORS: usize>(self, simd: S) {
        let Self { part, row_size, selection, in_order, answers } = self;
        let tile_bytes = if selection.keys() <= KEYS { TILE_BYTES_ALONE } else { TILE_BYTES };
        let tile_rows = (tile_bytes / row_size).next_multiple_of(64);
        for (i, rows) in part.bytes.chunks(tile_rows * row_size).enumerate() {
            let tile = Tile { rows, first_row: part.first_row + i * tile_rows, row_size, selection, in_order };
            tile.add_groups::<S, KEYS, VECTORS>(simd, answers);
        }
    }
}

/// Rows that stay in the cache while every group of keys goes over them.
#[derive(Clone, Copy)]
struct Tile<'a> {
    rows: &'a [u8],
    first_row: usize,
    row_size: usize,
    selection: &'a Selection,
    in_order: InOrder,
}

impl Tile<'_> {
    /// Processes all keys in groups of `KEYS`, and the remainder in smaller groups.
    #[inline(always)]
    fn add_groups<S: Simd, const KEYS: usize, const VECTORS: usize>(self, simd: S, answers: &mut [u8]) {
        let keys = self.selection.keys();
        let share = Share { of: keys.div_ceil(KEYS), index: 0 };
        let mut key = 0;
        while key + KEYS <= keys {
            self.add_columns::<S, KEYS, VECTORS>(simd, key, Share { index: key / KEYS, ..share }, answers);
            key += KEYS;
        }
        let last = Share { index: share.of - 1, ..share };
        match keys - key {
            5 => self.add_columns::<S, 5, VECTORS>(simd, key, last, answers),
            4 => self.add_columns::<S, 4, VECTORS>(simd, key, last, answers),
            3 => self.add_columns::<S, 3, VECTORS>(simd, key, last, answers),
            2 => self.add_columns::<S, 2, VECTORS>(simd, key, last, answers),
            1 => self.add_columns::<S, 1, VECTORS>(simd, key, last, answers),
            _ => {}
        }
    }

    /// Processes a group of keys in columns of `VECTORS` vectors, and the remainder of a row in narrower ones.
    #[inline(always)]
    fn add_columns<S: Simd, const KEYS: usize, const VECTORS: usize>(
        self,
        simd: S,
        key: usize,
        share: Share,
        answers: &mut [u8],
    ) {
        let mut at = 0;
        while at + VECTORS * S::BYTES <= self.row_size {
            self.add::<S, KEYS, VECTORS>(simd, key, at, share, answers);
            at += VECTORS * S::BYTES;
        }
        while at < self.row_size {
            self.add::<S, KEYS, 1>(simd, key, at, share, answers);
            at += S::BYTES;
        }
    }

    /// One group of keys, one column.
    #[inline(always)]
    fn add<S: Simd, const KEYS: usize, const VECTORS: usize>(
        self,
        simd: S,
        key: usize,
        at: usize,
        share: Share,
        answers: &mut [u8],
    ) {
        let Self { rows, first_row, row_size, selection, in_order } = self;
        let count = rows.len() / row_size;
        // The column lies within a row, and the answers within their buffer: `add_columns` never goes beyond a row, and `run`
        // checked the buffer's length.
        debug_assert!(at + VECTORS * S::BYTES <= row_size && (key + KEYS) * row_size <= answers.len());
        // One borrow for all: each further one would take the buffer from the pointers before it.
        let answers = answers.as_mut_ptr();
        let answers: [*mut u8; KEYS] = std::array::from_fn(|k| answers.wrapping_add((key + k) * row_size + at));
        let mut sums: [[S::Vector; VECTORS]; KEYS] = std::array::from_fn(|k| {
            // SAFETY: the column of answer `key + k` lies within the buffer, see above.
            std::array::from_fn(|v| unsafe { simd.load(answers[k].add(v * S::BYTES)) })
        });
        let words: [&[u64]; KEYS] = std::array::from_fn(|k| selection.key(key + k));
        // One group that reads rows whole reads them in order. Otherwise every column of every group asks for its share of the next tile.
        let (ahead, mut turns) = match share.of == 1 && row_size == VECTORS * S::BYTES {
            true if in_order == InOrder::Hardware => (0, NEVER),
            true => (AHEAD_ALONE, 0),
            false => (rows.len(), share.index),
        };
        let mut row = 0;
        while row < count {
            // Up to the end of a word of selection bits.
            let (word, bit) = ((first_row + row) / 64, (first_row + row) % 64);
            let end = count.min(row + 64 - bit);
            let mut bits: [u64; KEYS] = std::array::from_fn(|k| words[k][word] >> bit);
            while row < end {
                let start = rows.as_ptr().wrapping_add(row * row_size + at);
                let asks = turns == 0;
                turns = if asks { share.of - 1 } else { turns - 1 };
                if asks {
                    // The column's lines of the row that far ahead.
                    for v in (0..VECTORS * S::BYTES).step_by(64) {
                        simd.prefetch(start.wrapping_add(ahead + v));
                    }
                }
                // SAFETY: `row` is less than the number of rows and the column lies within it.
                let column: [S::Vector; VECTORS] =
                    std::array::from_fn(|v| unsafe { simd.load(start.add(v * S::BYTES)) });
                for k in 0..KEYS {
                    let mask = simd.mask(bits[k]);
                    bits[k] >>= 1;
                    for v in 0..VECTORS {
                        sums[k][v] = simd.xor_masked(sums[k][v], column[v], mask);
                    }
                }
                row += 1;
            }
        }
        for (answer, sums) in answers.into_iter().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: as for the loads above.
                unsafe { simd.store(answer.add(v * S::BYTES), sum) };
            }
        }
    }
}

/// Which of the next tile's rows a group of keys asks for, so that all groups together ask for each once.
#[derive(Clone, Copy)]
struct Share {
    of: usize,
    index: usize,
}
