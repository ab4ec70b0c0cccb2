//! AES with the CPU's own instructions, in registers of three widths.
//!
//! What is done with it is written once ([`Work`]) over the operations of a register ([`Wide`]), and compiled once for each width.

mod aes_ni;
mod vaes256;
mod vaes512;
mod work;

use assay_harness::aes::ROUND_KEYS;

use aes_ni::AesNi;
use vaes256::Vaes256;
use vaes512::Vaes512;
pub(super) use work::{Below, Fill, MayContain, OffsetsAt};

use super::Wish;
use crate::geometry::Place;

/// Blocks in the widest register.
const WIDEST: usize = 4;

/// Registers with whole AES blocks in them. A value of the type proves that the CPU has the instructions.
pub(super) trait Wide: Copy {
    /// Blocks in a register.
    const BLOCKS: usize;
    /// A register.
    type Vector: Copy;

    /// The first blocks of these.
    fn load(self, blocks: &[u128; WIDEST]) -> Self::Vector;

    /// The inputs `high << 64 | block << 32 | low` for the blocks of these places.
    ///
    /// # Panics
    ///
    /// When there are not exactly as many places as blocks in a register.
    fn at_places(self, places: &[Place], low: u64, high: u64) -> Self::Vector;

    /// Writes all blocks.
    ///
    /// # Panics
    ///
    /// When there is not room for exactly these.
    fn store(self, vector: Self::Vector, to: &mut [u128]);

    /// One of the rounds between the first and the last.
    fn round(self, vector: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// The last round.
    fn last_round(self, vector: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// `a ^ b`.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a & b`.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a + b` in lanes of 64 bits, wrapping.
    fn add64(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a - b` in lanes of 32 bits, wrapping.
    fn sub32(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// The lesser in lanes of 32 bits without sign.
    fn min32(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// The lesser in lanes of 16 bits without sign.
    fn min16(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// A bit for every lane of 32 bits: whether `a < b`, without sign.
    fn below32(self, a: Self::Vector, b: Self::Vector) -> u32;

    /// Whether a lane of 16 bits is zero.
    fn any_zero16(self, a: Self::Vector) -> bool;
}

/// Work for registers of any width. Implementations of [`run`](Self::run) must be `#[inline(always)]`, as everything they call.
pub(super) trait Work {
    /// What it computes.
    type Output;

    /// Computes it.
    fn run<W: Wide>(self, wide: W) -> Self::Output;
}

/// A width that this CPU has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Width {
    /// One block: AES-NI.
    One(AesNi),
    /// Two: VAES.
    Two(Vaes256),
    /// Four: VAES with AVX-512.
    Four(Vaes512),
}

impl Width {
    /// Every width that this CPU has, the narrowest first.
    pub(super) fn available() -> Vec<Self> {
        let narrow = AesNi::detect().map(Self::One);
        narrow.into_iter().chain(Vaes256::detect().map(Self::Two)).chain(Vaes512::detect().map(Self::Four)).collect()
    }

    /// The wish that it fulfils.
    pub(super) fn wish(self) -> Wish {
        match self {
            Self::One(_) => Wish::AesNi,
            Self::Two(_) => Wish::Vaes256,
            Self::Four(_) => Wish::Vaes512,
        }
    }

    #[inline]
    fn run<T: Work>(self, work: T) -> T::Output {
        match self {
            Self::One(wide) => wide.run(work),
            Self::Two(wide) => wide.run(work),
            Self::Four(wide) => wide.run(work),
        }
    }
}

/// A cipher under one key.
#[derive(Clone)]
pub(super) struct Native {
    width: Width,
    keys: [u128; ROUND_KEYS],
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").field("width", &self.width).finish_non_exhaustive()
    }
}

impl Native {
    pub(super) fn new(width: Width, key: [u8; 16]) -> Self {
        let aes = assay_harness::aes::AesNi::detect().expect("every width has AES-NI beside it");
        Self { width, keys: aes.round_keys(key) }
    }

    /// The round keys.
    pub(super) fn keys(&self) -> &[u128; ROUND_KEYS] {
        &self.keys
    }

    /// Does the work.
    #[inline]
    pub(super) fn run<T: Work>(&self, work: T) -> T::Output {
        self.width.run(work)
    }
}
