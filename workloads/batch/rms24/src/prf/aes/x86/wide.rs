//! The operations of a register, and work that is written over them.

use crate::geometry::Place;

/// Blocks in the widest register.
pub(super) const WIDEST: usize = 4;

/// Registers with whole AES blocks in them. A value of the type proves that the CPU has the instructions.
pub(in crate::prf::aes) trait Wide: Copy {
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
pub(in crate::prf::aes) trait Work {
    /// What it computes.
    type Output;

    /// Computes it.
    fn run<W: Wide>(self, wide: W) -> Self::Output;
}

/// Operations of two registers, each by one instruction, in the implementation of [`Wide`] for a proof that the CPU has it.
macro_rules! instructions {
    ($vector:ty: $($operation:ident = $instruction:ident,)*) => {$(
        #[inline(always)]
        fn $operation(self, a: $vector, b: $vector) -> $vector {
            // SAFETY: `self` proves that the CPU has the instruction, which touches no memory.
            unsafe { $instruction(a, b) }
        }
    )*};
}

pub(super) use instructions;
