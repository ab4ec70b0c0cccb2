//! Reference implementation for all strategies, slow and simple.

use crate::matrix::Matrix;

/// One answer per key: the XOR of the rows whose bit is one.
pub fn scan(matrix: &Matrix, keys: usize, bit: impl Fn(usize, usize) -> bool) -> Vec<Vec<u8>> {
    let answer = |key| {
        let mut sum = vec![0; matrix.row_size()];
        for row in 0..matrix.rows() {
            if bit(key, row) {
                for (sum, byte) in sum.iter_mut().zip(matrix.row(row)) {
                    *sum ^= byte;
                }
            }
        }
        sum
    };
    (0..keys).map(answer).collect()
}
