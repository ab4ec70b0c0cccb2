//! Whether a row is in a sum: from a key, or from bits that were expanded beforehand.

use crate::keys::{DpfKey, ToyKey};
use crate::selection::Selection;

/// A bit per row, from wherever.
pub trait RowBits: Sync {
    /// The bit of a row.
    fn bit(&self, row: usize) -> bool;
}

impl RowBits for ToyKey {
    #[inline]
    fn bit(&self, row: usize) -> bool {
        Self::bit(self, row)
    }
}

impl RowBits for DpfKey {
    fn bit(&self, row: usize) -> bool {
        Self::bit(self, row)
    }
}

/// Constant one bits, to measure a scan without the selection of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct EveryRow;

impl RowBits for EveryRow {
    #[inline]
    fn bit(&self, _: usize) -> bool {
        true
    }
}

/// The bits of one key, expanded beforehand.
#[derive(Debug, Clone, Copy)]
pub struct Expanded<'a>(&'a [u64]);

impl<'a> Expanded<'a> {
    /// The bits of `key`.
    #[must_use]
    pub fn of(selection: &'a Selection, key: usize) -> Self {
        Self(selection.key(key))
    }
}

impl RowBits for Expanded<'_> {
    #[inline]
    fn bit(&self, row: usize) -> bool {
        self.0[row / 64] >> (row % 64) & 1 == 1
    }
}
