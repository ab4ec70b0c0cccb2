//! The document's queries and updates.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::keys::{DpfKey, KeyKind, ToyKey};
use crate::matrix::Update;
use crate::server::Query;

/// Seed of the matrix in the document's benchmark.
pub const SEED: u64 = 0x0bad_5eed;
/// Distinguishes the keys' seed from the matrix's.
const KEY_SEED: u64 = 0xa11c_e0de;
/// How far apart the rows of successive queries are, before they are taken modulo the number of rows.
const QUERY_STRIDE: u64 = 1_146_959_810_393_466_559;
/// Every byte of the document's one pending update.
const DIFFERENCE: u8 = 0xa5;

/// The rows that query `query` asks for: one, and two more a third and two thirds of the matrix further along.
#[must_use]
pub fn targets(query: usize, rows: usize) -> [usize; 3] {
    let base = ((query as u64).wrapping_mul(QUERY_STRIDE) % rows as u64) as usize;
    [base, (base + rows / 3) % rows, (base + 2 * rows / 3) % rows]
}

/// A batch as one of the two servers gets it: the one whose toy keys' value in the wanted row is 0xff, as in the document.
///
/// The document draws the keys of all its batch sizes from one stream, one size after the other; here every batch starts it anew, so that
/// a batch depends on nothing but its own parameters.
#[must_use]
pub fn queries(kind: KeyKind, rows: usize, queries: usize, seed: u64) -> Vec<Query> {
    pairs(kind, rows, queries, seed).into_iter().map(|[_, second]| second).collect()
}

/// A batch as both servers get it.
#[must_use]
pub fn pairs(kind: KeyKind, rows: usize, queries: usize, seed: u64) -> Vec<[Query; 2]> {
    // `StdRng` of the `rand` that the document used is ChaCha with twelve rounds, and its random bytes are the low bytes of words.
    let mut rng = ChaCha12Rng::seed_from_u64(seed ^ KEY_SEED);
    let mut key = |target: usize| -> [Vec<u8>; 2] {
        match kind {
            KeyKind::Toy => {
                let secret = std::array::from_fn(|_| rng.next_u32() as u8);
                ToyKey::pair(secret, target as u64).map(|key| key.to_bytes().to_vec())
            }
            KeyKind::Dpf => {
                let seeds = [(); 2].map(|()| {
                    let mut seed = [0; 16];
                    rng.fill_bytes(&mut seed);
                    u128::from_le_bytes(seed)
                });
                DpfKey::pair(seeds, target, rows).map(|key| key.to_bytes())
            }
        }
    };
    let mut pair = |query| {
        let [a, b, c] = targets(query, rows).map(&mut key);
        let ([a0, a1], [b0, b1], [c0, c1]) = (a, b, c);
        [[a0, b0, c0], [a1, b1, c1]]
    };
    (0..queries).map(&mut pair).collect()
}

/// Pending updates. The first is the document's: the middle row, every byte 0xa5. Further ones are spread over the rows as the queries
/// are; with more updates than rows, rows are hit again.
#[must_use]
pub fn updates(count: usize, rows: usize, row_size: usize) -> Vec<Update> {
    let update = |i: usize| {
        let row = (rows / 2 + targets(i, rows)[0]) % rows;
        Update { row, difference: vec![DIFFERENCE.rotate_left(i as u32 % 8); row_size] }
    };
    (0..count).map(update).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_update_is_the_documents() {
        let update = &updates(1, 262_144, 256)[0];
        assert_eq!((update.row, update.difference[0], update.difference[255]), (131_072, 0xa5, 0xa5));
    }

    #[test]
    fn the_queries_ask_for_the_documents_rows() {
        assert_eq!(targets(0, 262_144), [0, 87_381, 174_762]);
        let base = 1_146_959_810_393_466_559 % 262_144;
        assert_eq!(targets(1, 262_144)[0], base);
    }

    #[test]
    fn more_updates_than_rows_hit_rows_again() {
        let mut rows: Vec<_> = updates(100, 7, 64).into_iter().map(|update| update.row).collect();
        rows.sort_unstable();
        rows.dedup();
        assert!(rows.len() <= 7 && rows.iter().all(|row| *row < 7));
    }
}
