//! `loop`: one scan per query, as the document measured it.
//!
//! ```text
//! for query in batch
//!     for row in matrix
//!         masks = 0x00 or 0xff for each of the query's three keys         three PRF calls
//!         for block of 64 bytes in row
//!             for key in query: sum[key][block] ^= block & masks[key]     no branch
//! ```
//!
//! This is the baseline and deliberately not optimised: plain safe code, built with the same flags as everything else, and
//! compiled for the baseline of the architecture.

use std::hint::black_box;
use std::ops::Range;

use super::answers::{Answers, KEYS_PER_QUERY, xor_into};
use super::bits::RowBits;
use crate::matrix::Matrix;

/// Bytes that are masked and added at a time.
pub(super) const BLOCK: usize = 64;

/// Adds the selected rows in `rows` to the answers, query by query.
pub fn scan<B: RowBits>(matrix: &Matrix, rows: Range<usize>, keys: &[B], answers: &mut Answers) {
    let row_size = matrix.row_size();
    let queries = keys.as_chunks::<KEYS_PER_QUERY>().0;
    for (keys, answers) in queries.iter().zip(answers.bytes_mut().chunks_exact_mut(KEYS_PER_QUERY * row_size)) {
        let mut sums = [(); KEYS_PER_QUERY].map(|()| vec![0_u8; row_size]);
        scan_query(matrix, rows.clone(), keys, &mut sums);
        for (answer, sum) in answers.chunks_exact_mut(row_size).zip(&sums) {
            xor_into(answer, sum);
        }
    }
}

/// Evaluates the keys for all of `rows` as [`scan`] does, three for every row, and reads none. The answers begin with the XOR of the
/// numbers of the rows whose bit is one.
pub fn bits_alone<B: RowBits>(rows: Range<usize>, keys: &[B], answers: &mut Answers) {
    let mut answers: Vec<&mut [u8]> = answers.iter_mut().collect();
    for (keys, answers) in keys.as_chunks::<KEYS_PER_QUERY>().0.iter().zip(answers.chunks_mut(KEYS_PER_QUERY)) {
        let mut sums = [0_u64; KEYS_PER_QUERY];
        for row in rows.clone() {
            // Hidden from the compiler, or it would evaluate many rows at a time, which it cannot do between the rows of a scan.
            let masks = black_box([keys[0].bit(row), keys[1].bit(row), keys[2].bit(row)].map(mask_byte));
            for (sum, mask) in sums.iter_mut().zip(masks) {
                *sum ^= row as u64 & u64::from(mask & 1).wrapping_neg();
            }
        }
        for (answer, sum) in answers.iter_mut().zip(sums) {
            xor_into(&mut answer[..size_of::<u64>()], &sum.to_le_bytes());
        }
    }
}

fn scan_query<B: RowBits>(
    matrix: &Matrix,
    rows: Range<usize>,
    keys: &[B; KEYS_PER_QUERY],
    sums: &mut [Vec<u8>; KEYS_PER_QUERY],
) {
    let row_size = matrix.row_size();
    for part in matrix.parts(rows) {
        for (i, row) in part.bytes.chunks_exact(row_size).enumerate() {
            let row_number = part.first_row + i;
            let masks = [
                mask_byte(keys[0].bit(row_number)),
                mask_byte(keys[1].bit(row_number)),
                mask_byte(keys[2].bit(row_number)),
            ];
            let mut at = 0;
            while at + BLOCK <= row_size {
                let block = &row[at..at + BLOCK];
                for (sum, mask) in sums.iter_mut().zip(masks) {
                    xor_masked(&mut sum[at..at + BLOCK], block, mask);
                }
                at += BLOCK;
            }
        }
    }
}

/// All ones or all zeroes.
#[inline]
pub(super) fn mask_byte(bit: bool) -> u8 {
    u8::from(bit).wrapping_neg()
}

/// `sum ^= block & mask`.
#[inline]
pub(super) fn xor_masked(sum: &mut [u8], block: &[u8], mask: u8) {
    for (sum, byte) in sum.iter_mut().zip(block) {
        *sum ^= byte & mask;
    }
}
