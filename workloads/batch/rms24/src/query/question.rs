//! Questions to the server.

use crate::geometry::Place;

/// One question to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The sum of these entries.
    Pairs(Vec<Place>),
    /// Two sums: over the blocks whose bit is set and over the others. Both halves share their offsets, in the order of blocks.
    Halves {
        /// A bit per block.
        mask: Vec<u8>,
        /// An offset for every block of a half.
        offsets: Vec<u16>,
    },
}
