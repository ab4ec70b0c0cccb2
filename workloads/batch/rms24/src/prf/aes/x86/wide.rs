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
    /// Near 32-bit lanes of the values examined so far.
    type Near32: Copy;
    /// Which lanes of 16 bits were.
    type Near16: Copy;

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

    /// Of the four times 32 bits that every block of two registers has those with the number `lane`: each the lower half of 64 bits, whose
    /// upper half means nothing.
    fn lanes32(self, two: [Self::Vector; 2], lane: u32) -> Self::Vector;

    /// Writes the upper halves of 64 bits as the offsets of places.
    ///
    /// # Panics
    ///
    /// When there are not exactly twice as many places as blocks in a register.
    fn put_offsets(self, vector: Self::Vector, places: &mut [Place]);

    /// One of the rounds between the first and the last.
    fn round(self, vector: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// The last round.
    fn last_round(self, vector: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// Returns the vector unchanged. Implementations may use it as a barrier against reordering by the compiler.
    #[inline(always)]
    fn in_order(self, vector: Self::Vector) -> Self::Vector {
        vector
    }

    /// `a ^ b`.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a & b`.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a + b` in lanes of 64 bits, wrapping.
    fn add64(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a << b` in lanes of 32 bits; nothing is left of one that is shifted by 32.
    fn shl32(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a * b` of the lower halves of 64 bits, without sign.
    fn mul32(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a - b` in lanes of 32 bits, wrapping.
    fn sub32(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// A bit for every lane of 32 bits: whether `a < b`, without sign.
    fn below32(self, a: Self::Vector, b: Self::Vector) -> u32;

    /// A bit for every lane of 16 bits: whether `a == b`.
    fn equal16(self, a: Self::Vector, b: Self::Vector) -> u32;

    /// No lane of 32 bits was near yet.
    fn none_near32(self) -> Self::Near32;

    /// Adds the lanes that are at most `reach`, without sign, which is the same in all calls.
    fn look32(self, near: Self::Near32, a: Self::Vector, reach: Self::Vector) -> Self::Near32;

    /// Reports whether a lane of 32 bits was near.
    fn any_near32(self, near: Self::Near32, reach: Self::Vector) -> bool;

    /// No lane of 16 bits was near yet.
    fn none_near16(self) -> Self::Near16;

    /// Adds the lanes that are `bits`, which is the same in all calls.
    fn look16(self, near: Self::Near16, a: Self::Vector, bits: Self::Vector) -> Self::Near16;

    /// Reports whether a lane of 16 bits was near.
    fn any_near16(self, near: Self::Near16) -> bool;
}

/// Work for registers of any width. Implementations of [`run`](Self::run) must be `#[inline(always)]`, as everything they call.
pub(in crate::prf::aes) trait Work {
    /// The result type.
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
