//! Pseudo-random functions of the hints; a hint's entries are computed, not stored.
//!
//! For every hint and block there is a *select value*, 32 random bits that decide whether the hint covers the block,
//! and an *offset*, the index of its entry in the block.

mod aes;
mod any;
mod chacha;

pub use aes::{AesPath, AesPrf, CHUNK, Lanes, Matcher, ROOM, Wish, blocks_of_bits, expand};
pub use any::{AnyPrf, PrfKind};
pub use chacha::ChaChaPrf;

/// A client's secret: everything random about its hints follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret that belongs to a seed, so that a trial can be repeated.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(blake3::derive_key("assay rms24 client secret", &seed.to_le_bytes()))
    }

    /// A key for one purpose.
    #[must_use]
    pub fn key(&self, purpose: &str) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, purpose.as_bytes()).as_bytes()
    }
}

/// Select values and offsets.
pub trait Prf: Sync {
    /// The select value of a block in a hint.
    fn select(&self, hint: u32, block: u32) -> u32;

    /// The offset of a block in a hint, below the block size.
    fn offset(&self, hint: u32, block: u32) -> u32;

    /// The select values of all blocks of a hint, at the best rate there is.
    fn selects(&self, hint: u32, values: &mut [u32]);

    /// The offsets of all blocks of a hint, at the best rate there is.
    fn offsets(&self, hint: u32, values: &mut [u32]);
}
