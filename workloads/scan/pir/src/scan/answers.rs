//! Result of a scan: a sum of rows per key.

use std::slice;

/// Keys of one query: its row may lie in any of three places.
pub const KEYS_PER_QUERY: usize = 3;

/// One answer per key, each as long as a row. They start on a cache line, or every other vector of them would lie across two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    lines: Vec<Line>,
    row_size: usize,
}

/// A cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Answers {
    /// All zeroes.
    ///
    /// # Panics
    ///
    /// When a row is not a whole number of cache lines.
    #[must_use]
    pub fn new(keys: usize, row_size: usize) -> Self {
        assert!(row_size.is_multiple_of(size_of::<Line>()), "a row has whole cache lines");
        Self { lines: vec![Line([0; 64]); keys * row_size / size_of::<Line>()], row_size }
    }

    /// The answers one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a line is 64 bytes without padding, and lines lie one after the other.
        unsafe { slice::from_raw_parts(self.lines.as_ptr().cast(), size_of_val(&*self.lines)) }
    }

    /// The answers one after the other, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; any bytes make a line, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), size_of_val(&*self.lines)) }
    }

    /// The answers, one per key.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes().chunks_exact(self.row_size)
    }

    /// The answers, one per key, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let row_size = self.row_size;
        self.bytes_mut().chunks_exact_mut(row_size)
    }

    /// Adds the sums of another part of the rows.
    pub fn add(&mut self, other: &Self) {
        xor_into(self.bytes_mut(), other.bytes());
    }
}

/// `sum ^= bytes`.
pub(crate) fn xor_into(sum: &mut [u8], bytes: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum ^= byte;
    }
}
