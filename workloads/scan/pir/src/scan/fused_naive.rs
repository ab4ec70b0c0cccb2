//! `fused-naive`: the prototype that followed from the document's plan (TASK-23), as its plan describes it.
//!
//! ```text
//! for row in matrix
//!     masks = 0x00 or 0xff for every key of every query
//!     for block of 64 bytes in row
//!         for query in batch
//!             for key in query: sum[query][key][block] ^= block & masks[query][key]
//! ```
//!
//! It reads the matrix once and is slower than [`per_query`](super::per_query): the machine was never waiting for memory. The PRF calls are
//! as many as before, and the sums of all queries no longer stay in registers or in one corner of the cache.

use std::ops::Range;

use super::answers::{Answers, KEYS_PER_QUERY, xor_into};
use super::bits::RowBits;
use super::per_query::{BLOCK, mask_byte, xor_masked};
use crate::matrix::Matrix;

/// Adds the selected rows in `rows` to the answers, row by row.
pub fn scan<B: RowBits>(matrix: &Matrix, rows: Range<usize>, keys: &[B], answers: &mut Answers) {
    let row_size = matrix.row_size();
    let queries = keys.as_chunks::<KEYS_PER_QUERY>().0;
    let mut sums: Vec<[Vec<u8>; KEYS_PER_QUERY]> =
        queries.iter().map(|_| [(); KEYS_PER_QUERY].map(|()| vec![0; row_size])).collect();
    let mut masks = vec![[0_u8; KEYS_PER_QUERY]; queries.len()];
    for part in matrix.parts(rows) {
        for (i, row) in part.bytes.chunks_exact(row_size).enumerate() {
            let row_number = part.first_row + i;
            for (masks, keys) in masks.iter_mut().zip(queries) {
                for (mask, key) in masks.iter_mut().zip(keys) {
                    *mask = mask_byte(key.bit(row_number));
                }
            }
            let mut at = 0;
            while at + BLOCK <= row_size {
                let block = &row[at..at + BLOCK];
                for (sums, masks) in sums.iter_mut().zip(&masks) {
                    for (sum, mask) in sums.iter_mut().zip(masks) {
                        xor_masked(&mut sum[at..at + BLOCK], block, *mask);
                    }
                }
                at += BLOCK;
            }
        }
    }
    for (answer, sum) in answers.iter_mut().zip(sums.iter().flatten()) {
        xor_into(answer, sum);
    }
}
