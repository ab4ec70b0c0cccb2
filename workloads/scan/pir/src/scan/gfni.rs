//! `fused-gfni`: one pass, as a product of bit matrices.
//!
//! For eight keys and eight rows the selection bits are an 8 x 8 matrix `S`, and a column of bytes of the eight rows is an 8 x 8 matrix
//! `M`, one byte per row. The eight keys' sums of that column are the product `S M` over the field of two elements. GFNI has an
//! instruction for eight such products at once (`vgf2p8affineqb`): 4,096 additions of a bit, where an XOR of vectors does 512.
//!
//! ```text
//! for 64 rows, for column of 64 bytes
//!     A[b][j] = the bytes of rows 8b .. 8b + 7, eight columns at a time, each in the matrix layout of the instruction      b, j in 0..8
//!     for eight keys, three times at once
//!         x[b] = their bits for rows 8b .. 8b + 7, one byte per key, the same for all columns
//!         for j: sums[j] ^= A[0][j] x[0] ^ A[1][j] x[1] ^ ... ^ A[7][j] x[7]
//! ```
//!
//! 1. A matrix byte goes through three shuffles and one product to become part of `A`, once for all keys; `A` is 4 KiB. The one of the next
//!    column is made in shares while this one is multiplied.
//! 2. A key costs an eighth of a product per eight rows and 64 bytes: with 32 queries the whole scan takes little longer than reading
//!    the rows once.
//! 3. Sums stay in the order of the shuffled columns, eight keys per word, and are reordered once at the end.
//!
//! With few keys the shuffles do not pay.
//!
//! There is one instruction set for this, so there is one file.

use std::arch::asm;
use std::arch::x86_64::*;
use std::hint::black_box;
use std::ops::Range;

use assay_harness::ceiling::{self, Limit};
use assay_harness::prefetch::{self, InOrder};
use assay_harness::simd::Isa;
use assay_harness::{Quantity, Unit};

use super::tiled;
use crate::matrix::{Matrix, Part};
use crate::selection::Selection;

/// Keys that share a word of sums, and rows that share a product.
const EIGHT: usize = 8;
/// Bytes of a column: one vector.
const COLUMN: usize = 64;
/// Rows of a block: one word of selection bits.
const BLOCK_ROWS: usize = 64;
/// How many blocks ahead rows are asked for. One was too late on a CPU whose neighbours use memory as well.
const AHEAD: usize = 4;
/// Words of selection bits that are rearranged at once: a cache line of a key's.
const WORDS: usize = 8;
/// Groups of keys that are multiplied at once: as many as the registers hold the bits of.
const AT_ONCE: usize = 3;
/// The bit matrix that turns the order of bits and bytes round; the product with it transposes.
const TRANSPOSE: i64 = 0x0102_0408_1020_4080;

/// Proof that the CPU has GFNI and VBMI on 512-bit vectors. It is made by [`Gfni::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub struct Gfni(());

impl Gfni {
    /// CPU features beyond those of the `avx512` path.
    pub const FEATURES: &'static str = "gfni,avx512vbmi";

    /// The proof, where the CPU has the instructions and `isa` allows them.
    #[must_use]
    pub fn detect(isa: Isa) -> Option<Self> {
        let there = is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512vbmi");
        (matches!(isa, Isa::Avx512(_)) && there).then_some(Self(()))
    }

    /// Products per second of `threads` threads, the limit of this method.
    ///
    /// # Panics
    ///
    /// If `threads` is zero.
    #[must_use]
    pub fn product_rate(self, threads: usize) -> Limit {
        const PASSES: usize = 64;
        let seconds = ceiling::average(PASSES, threads, |_| {
            // SAFETY: `self` exists only where the features were detected.
            black_box(unsafe { multiply() });
        });
        let rate = Quantity::new((threads * ROUNDS * STREAMS) as f64 / seconds, Unit::new("products/s"));
        Limit::new(rate, "avx512+gfni", threads)
    }

    /// Adds the selected rows in `rows` to the answers, which lie one after the other.
    pub fn scan(self, matrix: &Matrix, rows: Range<usize>, selection: &Selection, isa: Isa, answers: &mut [u8]) {
        let row_size = matrix.row_size();
        let groups = selection.keys().div_ceil(EIGHT);
        let mut sums = vec![Sums::NONE; groups * row_size / COLUMN];
        for part in matrix.parts(rows) {
            let blocks = part.bytes.len() / row_size / BLOCK_ROWS;
            let (whole, rest) = part.bytes.split_at(blocks * BLOCK_ROWS * row_size);
            let scan = Scan { rows: whole, first_row: part.first_row, row_size, selection };
            // SAFETY: `self` exists only where the features were detected.
            unsafe { scan.add(&mut sums) };
            let part = Part { first_row: part.first_row + blocks * BLOCK_ROWS, bytes: rest };
            isa.run(tiled::ScanPart { part, row_size, selection, in_order: InOrder::Software, answers });
        }
        // SAFETY: as above.
        unsafe { put_right(&sums, row_size, answers) };
    }
}

/// Products that the method computes for a matrix of `matrix_bytes`: every vector is transposed once, and multiplied
/// once per eight keys.
#[must_use]
pub fn products(matrix_bytes: u64, keys: usize) -> f64 {
    (matrix_bytes / COLUMN as u64) as f64 * (1 + keys.div_ceil(EIGHT)) as f64
}

/// Rounds of a pass of [`Gfni::product_rate`], and independent products in each.
const ROUNDS: usize = 1 << 15;
const STREAMS: usize = 16;

/// Only products, with enough in flight to hide their latency.
#[target_feature(enable = "avx512f,gfni")]
fn multiply() -> i64 {
    let matrix = black_box(_mm512_set1_epi64(TRANSPOSE));
    let mut vectors: [__m512i; STREAMS] = std::array::from_fn(|i| _mm512_set1_epi64(black_box(i as i64)));
    for _ in 0..ROUNDS {
        vectors = vectors.map(|vector| _mm512_gf2p8affine_epi64_epi8::<0>(vector, matrix));
    }
    let sum = vectors.into_iter().fold(_mm512_setzero_si512(), |sum, vector| _mm512_xor_si512(sum, vector));
    _mm512_reduce_or_epi64(sum)
}

/// The sums of eight keys in one column. Word `w` of vector `j` holds a byte of each key, for byte `16 (w / 2) + 2 j + w % 2` of the
/// column.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Sums([[u64; EIGHT]; EIGHT]);

impl Sums {
    const NONE: Self = Self([[0; EIGHT]; EIGHT]);
}

/// Whole blocks of rows.
struct Scan<'a> {
    rows: &'a [u8],
    first_row: usize,
    row_size: usize,
    selection: &'a Selection,
}

impl Scan<'_> {
    /// Adds the selected rows to `sums`: for every column the sums of all groups of eight keys.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
    fn add(&self, sums: &mut [Sums]) {
        let Self { rows, first_row, row_size, selection } = *self;
        assert!(first_row.is_multiple_of(BLOCK_ROWS) && rows.len().is_multiple_of(BLOCK_ROWS * row_size));
        let groups = selection.keys().div_ceil(EIGHT);
        assert_eq!(sums.len(), groups * row_size / COLUMN);
        let mut bits = vec![[0; EIGHT]; WORDS * groups];
        if rows.is_empty() {
            return;
        }
        // Of a column, and of the one after it: that one is rearranged in shares between products of this one, which are computed by
        // another unit of the CPU. It can do both at a time where they are not far apart.
        let mut products = [[[_mm512_setzero_si512(); EIGHT]; EIGHT]; 2];
        let share = EIGHT.div_ceil(groups.div_ceil(AT_ONCE));
        let [mut this, mut next] = products.each_mut();
        rearrange(0..EIGHT, rows, row_size, this);
        for (block, block_rows) in rows.chunks_exact(BLOCK_ROWS * row_size).enumerate() {
            let (word, at) = (first_row / BLOCK_ROWS + block, block % WORDS);
            if at == 0 {
                for group in 0..groups {
                    let words = bits_of(selection, group * EIGHT, word);
                    for (bits, words) in bits[group..].iter_mut().step_by(groups).zip(words) {
                        *bits = words;
                    }
                }
            }
            // The words after these are on lines of as many keys, which is more than the CPU sees as streams.
            for key in (at..selection.keys()).step_by(WORDS) {
                prefetch::line_into_second_level(selection.key(key)[word..].as_ptr().wrapping_add(WORDS).cast::<u8>());
            }
            let bits = &bits[at * groups..(at + 1) * groups];
            for (column, sums) in sums.chunks_exact_mut(groups).enumerate() {
                let after = if (column + 1) * COLUMN < row_size {
                    &block_rows[(column + 1) * COLUMN..]
                } else {
                    &rows[(block + 1) * BLOCK_ROWS * row_size..]
                };
                // A share of a block to come, line after line: no CPU was seen to read on by itself across rows.
                let line = block_rows.as_ptr().wrapping_add(AHEAD * block_rows.len() + column * BLOCK_ROWS * COLUMN);
                let ahead = &Ahead { line, per_step: BLOCK_ROWS.div_ceil(groups.div_ceil(AT_ONCE) * EIGHT) };
                for (i, (bits, sums)) in bits.chunks(AT_ONCE).zip(sums.chunks_mut(AT_ONCE)).enumerate() {
                    if !after.is_empty() {
                        rearrange(i * share..EIGHT.min((i + 1) * share), after, row_size, next);
                    }
                    match bits.len() {
                        1 => add_groups::<1>(this, bits, sums, ahead, i * EIGHT),
                        2 => add_groups::<2>(this, bits, sums, ahead, i * EIGHT),
                        _ => add_groups::<AT_ONCE>(this, bits, sums, ahead, i * EIGHT),
                    }
                }
                std::mem::swap(&mut this, &mut next);
            }
        }
    }
}

/// Lines to come that are asked for evenly while groups are added up: asked for all at once, they would wait for each other.
struct Ahead {
    line: *const u8,
    /// How many lines one of the eight steps of some groups has time for.
    per_step: usize,
}

impl Ahead {
    /// Prefetches the step's share of the next rows into the second-level cache.
    #[inline(always)]
    fn ask(&self, step: usize) {
        for line in step * self.per_step..(step + 1) * self.per_step {
            prefetch::line_into_second_level(self.line.wrapping_add(line * COLUMN));
        }
    }
}

/// The bits of eight keys for [`WORDS`] words of rows from `word` on: for each word, and in it for every eight rows, one byte per key. Keys
/// and words that are not there select nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn bits_of(selection: &Selection, first_key: usize, word: usize) -> [[u64; EIGHT]; WORDS] {
    let keys: [__m512i; EIGHT] = std::array::from_fn(|k| {
        let words = if first_key + k < selection.keys() { &selection.key(first_key + k)[word..] } else { &[] };
        let there = !(u64::MAX << words.len().min(WORDS)) as u8;
        // SAFETY: of `words` no more than there are is read.
        unsafe { _mm512_maskz_loadu_epi64(there, words.as_ptr().cast()) }
    });
    // Byte 8 k + b becomes byte 8 b + k.
    let order = bytes(|i| i % EIGHT * EIGHT + i / EIGHT);
    let mut bits = [[0; EIGHT]; WORDS];
    for (bits, keys) in bits.iter_mut().zip(turned(keys)) {
        // SAFETY: a word's bits are 64 bytes.
        unsafe { _mm512_storeu_si512(bits.as_mut_ptr().cast(), _mm512_permutexvar_epi8(order, keys)) };
    }
    bits
}

/// Eight vectors as eight rows of words, turned into columns.
#[inline]
#[target_feature(enable = "avx512f")]
fn turned(rows: [__m512i; EIGHT]) -> [__m512i; EIGHT] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let pairs = [(rows[0], rows[1]), (rows[2], rows[3]), (rows[4], rows[5]), (rows[6], rows[7])];
    let halves = [pairs.map(|(x, y)| _mm512_unpacklo_epi64(x, y)), pairs.map(|(x, y)| _mm512_unpackhi_epi64(x, y))];
    let mut columns = [_mm512_setzero_si512(); EIGHT];
    for (half, [ab, cd, ef, gh]) in halves.into_iter().enumerate() {
        let even = [_mm512_shuffle_i64x2::<EVEN>(ab, cd), _mm512_shuffle_i64x2::<EVEN>(ef, gh)];
        let odd = [_mm512_shuffle_i64x2::<ODD>(ab, cd), _mm512_shuffle_i64x2::<ODD>(ef, gh)];
        columns[half] = _mm512_shuffle_i64x2::<EVEN>(even[0], even[1]);
        columns[4 + half] = _mm512_shuffle_i64x2::<ODD>(even[0], even[1]);
        columns[2 + half] = _mm512_shuffle_i64x2::<EVEN>(odd[0], odd[1]);
        columns[6 + half] = _mm512_shuffle_i64x2::<ODD>(odd[0], odd[1]);
    }
    columns
}

/// The products of some eights of rows in a column with which these rows begin.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn rearrange(eights: Range<usize>, rows: &[u8], row_size: usize, products: &mut [[__m512i; EIGHT]; EIGHT]) {
    for b in eights {
        products[b] = transposed(&rows[b * EIGHT * row_size..], row_size);
    }
}

/// One column of eight rows as matrices: word `w` of vector `j` is that of byte `16 (w / 2) + 2 j + w % 2` of the column.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn transposed(rows: &[u8], row_size: usize) -> [__m512i; EIGHT] {
    assert!(rows.len() >= (EIGHT - 1) * row_size + COLUMN);
    let load = |row: usize| {
        // SAFETY: there are eight rows from here, at least up to the end of this column, see the assertion.
        unsafe { _mm512_loadu_si512(rows.as_ptr().add(row * row_size).cast()) }
    };
    // The last row first: the instruction counts a matrix's rows from its highest byte.
    let words = interleaved(std::array::from_fn(|i| load(EIGHT - 1 - i)));
    let order = _mm512_set1_epi64(TRANSPOSE);
    words.map(|words| _mm512_gf2p8affine_epi64_epi8::<0>(order, words))
}

/// Eight vectors as eight rows of bytes, turned into columns: word `w` of the `j`-th result is column `16 (w / 2) + 2 j + w % 2`, a byte
/// from each vector in order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleaved(rows: [__m512i; EIGHT]) -> [__m512i; EIGHT] {
    let [a, b, c, d, e, f, g, h] = rows;
    // Pairs of bytes: columns 0 to 7 of every 16, then 8 to 15.
    let pairs = [(a, b), (c, d), (e, f), (g, h)].map(|(x, y)| [_mm512_unpacklo_epi8(x, y), _mm512_unpackhi_epi8(x, y)]);
    let mut columns = [_mm512_setzero_si512(); EIGHT];
    for half in 0..2 {
        let [ab, cd, ef, gh] = [pairs[0][half], pairs[1][half], pairs[2][half], pairs[3][half]];
        let abcd = [_mm512_unpacklo_epi16(ab, cd), _mm512_unpackhi_epi16(ab, cd)];
        let efgh = [_mm512_unpacklo_epi16(ef, gh), _mm512_unpackhi_epi16(ef, gh)];
        for quarter in 0..2 {
            let (x, y) = (abcd[quarter], efgh[quarter]);
            columns[4 * half + 2 * quarter] = _mm512_unpacklo_epi32(x, y);
            columns[4 * half + 2 * quarter + 1] = _mm512_unpackhi_epi32(x, y);
        }
    }
    columns
}

/// XORs the products of 64 rows into the sums of `GROUPS` times eight keys of a column, and prefetches the lines of the
/// steps from `first` on. Each vector of `products` is loaded once for all groups, because one load per product would
/// limit the product rate.
#[expect(clippy::needless_range_loop, reason = "an index into three kinds of arrays")]
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn add_groups<const GROUPS: usize>(
    products: &[[__m512i; EIGHT]; EIGHT],
    bits: &[[u64; EIGHT]],
    sums: &mut [Sums],
    ahead: &Ahead,
    first: usize,
) {
    assert!(bits.len() == GROUPS && sums.len() == GROUPS);
    let mut x = [[_mm512_setzero_si512(); EIGHT]; GROUPS];
    for (x, bits) in x.iter_mut().zip(bits) {
        for (x, bits) in x.iter_mut().zip(bits) {
            *x = _mm512_set1_epi64(bits.cast_signed());
        }
    }
    for j in 0..EIGHT {
        ahead.ask(first + j);
        let mut new = [_mm512_setzero_si512(); GROUPS];
        for (new, sums) in new.iter_mut().zip(sums.iter()) {
            // SAFETY: a sum is 64 bytes.
            *new = unsafe { _mm512_loadu_si512(sums.0[j].as_ptr().cast()) };
        }
        for b in (0..EIGHT).step_by(2) {
            let (one, other) = (products[b][j], products[b + 1][j]);
            for (new, x) in new.iter_mut().zip(&x) {
                let one = _mm512_gf2p8affine_epi64_epi8::<0>(x[b], one);
                let other = _mm512_gf2p8affine_epi64_epi8::<0>(x[b + 1], other);
                *new = _mm512_ternarylogic_epi64::<0x96>(*new, one, other);
            }
            new = new.map(|new| in_order(new));
        }
        for (new, sums) in new.into_iter().zip(sums.iter_mut()) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(sums.0[j].as_mut_ptr().cast(), new) };
        }
    }
}

/// The vector, which no instruction to come is computed before: the compiler would load the products of later rows first, and have too few
/// registers left for the bits of the keys.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_order(mut vector: __m512i) -> __m512i {
    // SAFETY: nothing is executed; the vector is in a register before and after.
    unsafe { asm!("/* {} */", inout(zmm_reg) vector, options(nomem, nostack, preserves_flags)) };
    vector
}

/// Adds the sums to the answers, a key's bytes in the order of its row.
#[target_feature(enable = "avx512f,avx512vbmi")]
fn put_right(sums: &[Sums], row_size: usize, answers: &mut [u8]) {
    let keys = answers.len() / row_size;
    let groups = keys.div_ceil(EIGHT);
    // Byte 8 w + k becomes byte 8 k + w, and of one key byte 8 j + w becomes byte 16 (w / 2) + 2 j + w % 2.
    let by_key = bytes(|i| i % EIGHT * EIGHT + i / EIGHT);
    let by_column = bytes(|i| i % 16 / 2 * EIGHT + i / 16 * 2 + i % 2);
    for (i, sums) in sums.iter().enumerate() {
        let (column, group) = (i / groups, i % groups);
        // SAFETY: a sum is 64 bytes.
        let words = sums.0.map(|words| unsafe { _mm512_loadu_si512(words.as_ptr().cast()) });
        let of_keys = turned(words.map(|words| _mm512_permutexvar_epi8(by_key, words)));
        for (key, gained) in (group * EIGHT..keys).zip(of_keys) {
            let answer = &mut answers[key * row_size + column * COLUMN..][..COLUMN];
            let gained = _mm512_permutexvar_epi8(by_column, gained);
            // SAFETY: the column is 64 bytes.
            unsafe {
                let before = _mm512_loadu_si512(answer.as_ptr().cast());
                _mm512_storeu_si512(answer.as_mut_ptr().cast(), _mm512_xor_si512(before, gained));
            }
        }
    }
}

/// A vector of bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn bytes(of: impl Fn(usize) -> usize) -> __m512i {
    let bytes: [u8; COLUMN] = std::array::from_fn(|i| of(i) as u8);
    // SAFETY: the array is 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
