//! The key of the document's benchmark. It is a mock, because the server gets the row in clear text.
//!
//! A key is 25 bytes: a 16-byte secret, the wanted row as 8 bytes, and one correction byte. Its value for a row is
//!
//! ```text
//! p = PRF(secret, row)            one byte
//! value = p ^ correction          for the wanted row
//!         p                       for every other row
//! bit = value != 0
//! ```
//!
//! One server's correction is `PRF(wanted)`, the other's `PRF(wanted) ^ 0xff`: the two bits differ in the wanted row only. Each
//! server selects 255 of 256 rows, not half of them.
//!
//! The PRF is not AES either, in the build that was measured. Its 16-byte state starts as the row's number (8 bytes, little-endian,
//! then 8 zeroes) XOR the secret, goes through four rounds of
//!
//! ```text
//! next[i] = rotate_left(state[i] * 27 + state[i + 5] + state[i + 10], 3)      (indices mod 16, bytes wrapping)
//! ```
//!
//! and gives its byte 0. [`ToyKey::value`] implements exactly that; `loop` and `fused-naive` call it for every row.
//!
//! # The fast path
//!
//! Put the state in the order of its indices times five: `x[j] = state[5 j mod 16]`. Then a round is
//! `next[j] = rotate_left(27 x[j] + x[j + 1] + x[j + 2], 3)`, byte 0 after four rounds needs `x[0..9]` of the start, and 16 of the 64
//! steps. Rows that differ in their lowest byte only, 256 aligned ones, differ in `x[0]` only, which the steps at other places never
//! see: those are the same for all 256 rows and are done once, and four steps are left to be done per row, in byte lanes. Every row's
//! PRF is still evaluated, and nothing is carried over from one run of 256 rows to the next.
//!
//! (It could be: `x[1]` and `x[2]` are `state[5]` and `state[10]`, and so on; bytes 1 and 2 of the row's number never reach byte 0 of the
//! result. The document's keys therefore repeat every 256 rows up to 2^24 rows. A test shows it. Using it would measure the mock's
//! weakness, not a scan.)

use assay_harness::simd::{Isa, Kernel, Simd};

use super::bad_key::BadKey;
use crate::selection::clear_beyond;

/// Rounds of the PRF.
const ROUNDS: usize = 4;
/// Rows that differ in the lowest byte of their number only.
const RUN: usize = 256;

/// The document's mock of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToyKey {
    secret: [u8; 16],
    target: u64,
    correction: u8,
}

impl ToyKey {
    /// Bytes of a key.
    pub const BYTES: usize = 25;

    /// The two servers' keys for the row `target`.
    #[must_use]
    pub fn pair(secret: [u8; 16], target: u64) -> [Self; 2] {
        let p = prf(&secret, target);
        [p, p ^ 0xff].map(|correction| Self { secret, target, correction })
    }

    /// The key as it goes over the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.secret);
        bytes[16..24].copy_from_slice(&self.target.to_le_bytes());
        bytes[24] = self.correction;
        bytes
    }

    /// Reads a key.
    ///
    /// # Errors
    ///
    /// When it has another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadKey> {
        let bad = || BadKey { expected: Self::BYTES, found: bytes.len() };
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| bad())?;
        let (secret, rest) = bytes.split_first_chunk().ok_or_else(bad)?;
        let (target, rest) = rest.split_first_chunk().ok_or_else(bad)?;
        Ok(Self { secret: *secret, target: u64::from_le_bytes(*target), correction: rest[0] })
    }

    /// The byte of one row.
    #[must_use]
    #[inline]
    pub fn value(&self, row: usize) -> u8 {
        let p = prf(&self.secret, row as u64);
        if row as u64 == self.target { p ^ self.correction } else { p }
    }

    /// The bit of one row.
    #[must_use]
    #[inline]
    pub fn bit(&self, row: usize) -> bool {
        self.value(row) != 0
    }

    /// Writes the bits of the first `rows` rows.
    pub fn expand(&self, isa: Isa, rows: usize, words: &mut [u64]) {
        let words = &mut words[..rows.div_ceil(64)];
        isa.run(Expand { secret: &self.secret, words });
        if self.target < rows as u64 {
            let target = self.target as usize;
            let word = &mut words[target / 64];
            *word = *word & !(1 << (target % 64)) | u64::from(self.bit(target)) << (target % 64);
        }
        clear_beyond(words, rows);
    }
}

/// The PRF, word for word.
#[inline]
fn prf(secret: &[u8; 16], row: u64) -> u8 {
    let mut state = [0_u8; 16];
    state[..8].copy_from_slice(&row.to_le_bytes());
    for i in 0..16 {
        state[i] ^= secret[i];
    }
    for _ in 0..ROUNDS {
        let mut next = [0_u8; 16];
        for i in 0..16 {
            let sum = state[i].wrapping_mul(0x1b).wrapping_add(state[(i + 5) % 16]).wrapping_add(state[(i + 10) % 16]);
            next[i] = sum.rotate_left(3);
        }
        state = next;
    }
    state[0]
}

/// The bits of a key without its correction.
struct Expand<'a> {
    secret: &'a [u8; 16],
    words: &'a mut [u64],
}

impl Kernel for Expand<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut counter = [0; 64];
        for (i, byte) in counter.iter_mut().enumerate() {
            *byte = i as u8;
        }
        for (run, words) in self.words.chunks_mut(RUN / 64).enumerate() {
            let uniform = uniform_terms(self.secret, (run * RUN) as u64);
            let terms = uniform.map(|term| simd.splat(term));
            for (i, word) in words.iter_mut().enumerate() {
                *word = 0;
                for at in (0..64).step_by(S::BYTES) {
                    // SAFETY: BYTES divides 64, so that many bytes of the counter are left at `at`.
                    let lanes = unsafe { simd.load(counter.as_ptr().add(at)) };
                    // The lowest byte of the row's number is 64 i + lane; 64 i has no bits in common with the lane.
                    let mut x = simd.xor(lanes, simd.splat(self.secret[0] ^ (64 * i) as u8));
                    for term in terms {
                        x = simd.rotate_left_3(simd.add(times27(simd, x), term));
                    }
                    *word |= simd.nonzero(x) << at;
                }
            }
        }
    }
}

/// `27 x = 3 x + 8 (3 x)` in byte lanes, which have no multiplication.
#[inline(always)]
fn times27<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let x3 = simd.add(x, simd.add(x, x));
    simd.add(x3, simd.times8(x3))
}

/// Addends of each round to `27 x[0]`: `x[1] + x[2]` before the round, identical for all 256 rows from `first` on.
#[inline(always)]
fn uniform_terms(secret: &[u8; 16], first: u64) -> [u8; ROUNDS] {
    /// How many of `x` byte 0 depends on.
    const LIVE: usize = 2 * ROUNDS + 1;
    let index = first.to_le_bytes();
    let mut x: [u8; LIVE] = std::array::from_fn(|j| {
        let i = 5 * j % 16;
        secret[i] ^ if i < 8 { index[i] } else { 0 }
    });
    let mut terms = [0; ROUNDS];
    for (round, term) in terms.iter_mut().enumerate() {
        *term = x[1].wrapping_add(x[2]);
        for j in 1..LIVE - 2 * (round + 1) {
            x[j] = x[j].wrapping_mul(27).wrapping_add(x[j + 1]).wrapping_add(x[j + 2]).rotate_left(3);
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_harness::simd::Isa;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lanes_agree_with_one_row_at_a_time(
            secret in prop::array::uniform16(any::<u8>()), target in 0_u64..1000, party in 0_usize..2, rows in 1_usize..1000,
        ) {
            let key = ToyKey::pair(secret, target)[party];
            for isa in Isa::available() {
                let mut words = vec![u64::MAX; rows.div_ceil(64)];
                key.expand(isa, rows, &mut words);
                for row in 0..words.len() * 64 {
                    let expected = row < rows && key.bit(row);
                    prop_assert_eq!(words[row / 64] >> (row % 64) & 1 == 1, expected, "{} row {}", isa.name(), row);
                }
            }
        }

        #[test]
        fn the_two_servers_bits_differ_in_the_wanted_row_only(
            secret in prop::array::uniform16(any::<u8>()), target in 0_usize..1000,
        ) {
            let [a, b] = ToyKey::pair(secret, target as u64);
            for row in 0..1000 {
                prop_assert_eq!(a.bit(row) != b.bit(row), row == target);
            }
        }

        #[test]
        fn key_round_trips(secret in prop::array::uniform16(any::<u8>()), target: u64, party in 0_usize..2) {
            let key = ToyKey::pair(secret, target)[party];
            prop_assert_eq!(ToyKey::from_bytes(&key.to_bytes()), Ok(key));
        }

        /// Not used anywhere: it shows how weak the mock is.
        #[test]
        fn the_prf_ignores_bits_8_to_23_of_the_row(secret in prop::array::uniform16(any::<u8>()), row in 0_u64..1 << 24) {
            prop_assert_eq!(prf(&secret, row), prf(&secret, row % 256));
        }
    }

    #[test]
    fn beyond_the_first_run_the_index_still_counts() {
        let secret = *b"0123456789abcdef";
        let differ = (0..256).filter(|row| prf(&secret, *row) != prf(&secret, *row + (1 << 24))).count();
        assert!(differ > 200, "only {differ} differ");
    }

    #[test]
    fn other_lengths_are_refused() {
        assert_eq!(ToyKey::from_bytes(&[0; 24]), Err(BadKey { expected: 25, found: 24 }));
    }
}
