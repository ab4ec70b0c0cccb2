//! Layout of inputs and outputs.

pub(super) const SELECT: u64 = 1;
pub(super) const OFFSET: u64 = 2;
/// Select values per call.
pub(super) const SELECTS: u32 = 4;
/// Increment of an input for the next block of the database.
pub(super) const NEXT_BLOCK: u64 = 1 << 32;

/// How an output is cut into offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Eight of 16 bits; the block size is a power of two.
    Eight,
    /// Four of 32 bits.
    Four,
}

impl Lanes {
    /// Layout for blocks of this size.
    #[must_use]
    pub fn of(block_size: u32) -> Self {
        if block_size.is_power_of_two() && block_size <= 1 << 16 { Self::Eight } else { Self::Four }
    }

    /// Offsets per output.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
        }
    }
}

/// Interpretation of a lane's bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    pub(super) block_size: u32,
    pub(super) lanes: Lanes,
}

impl Offsets {
    /// The offset that the bits of a lane mean.
    #[inline(always)]
    pub(super) fn of_bits(self, bits: u32) -> u32 {
        match self.lanes {
            Lanes::Eight => bits & (self.block_size - 1),
            Lanes::Four => ((u64::from(bits) * u64::from(self.block_size)) >> 32) as u32,
        }
    }

    /// How whole registers get to the offsets of a lane.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn cut(self, lane: u32) -> Cut {
        let (lane, shift) = match self.lanes {
            // Two lanes of 16 bits are one of 32, of which those bits that count come to the top.
            Lanes::Eight => (lane / 2, 32 - self.block_size.ilog2() - 16 * (lane % 2)),
            Lanes::Four => (lane, 0),
        };
        Cut { lane, shift, factor: self.block_size }
    }

    /// The bits that mean an offset.
    pub(super) fn wanted(self, offset: u32) -> Wanted {
        let size = u64::from(self.block_size);
        match self.lanes {
            Lanes::Eight => Wanted::Bits { mask: (size - 1) as u16, bits: offset as u16 },
            Lanes::Four => {
                let start = |offset: u32| (u64::from(offset) << 32).div_ceil(size);
                let first = start(offset);
                Wanted::Range { first: first as u32, reach: (start(offset + 1) - first - 1) as u32 }
            }
        }
    }

    /// The offset in one lane of an output.
    #[inline(always)]
    pub(super) fn of(self, output: u128, lane: u32) -> u32 {
        match self.lanes {
            Lanes::Eight => self.of_bits(u32::from((output >> (16 * lane)) as u16)),
            Lanes::Four => self.of_bits((output >> (32 * lane)) as u32),
        }
    }
}

/// An offset as the upper half of a product of 32 bits, shifted to the left, and a factor.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Which of the four times 32 bits of an output.
    pub(super) lane: u32,
    /// By how much they are shifted, up to 32: then nothing is left.
    pub(super) shift: u32,
    pub(super) factor: u32,
}

/// What to look for: hints that have a certain offset in a block.
#[derive(Debug, Clone, Copy)]
pub struct Matcher(pub(super) Wanted);

/// The bits of lanes that mean a certain offset.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Lanes of 16 bits: relevant bits and their values.
    Bits { mask: u16, bits: u16 },
    /// Of lanes of 32 bits: the first value that multiplication maps to the offset, and how far it is from there to the last.
    Range { first: u32, reach: u32 },
}

impl Matcher {
    /// How many lanes an output has, and a bit for each: whether it has the offset.
    pub(super) fn lanes(&self, output: u128) -> (u32, u64) {
        let lanes = |count: u32, has: &dyn Fn(u32) -> bool| {
            (count, (0..count).fold(0, |bits, lane| bits | u64::from(has(lane)) << lane))
        };
        match self.0 {
            Wanted::Bits { mask, bits } => lanes(8, &|lane| (output >> (16 * lane)) as u16 & mask == bits),
            Wanted::Range { first, reach } => {
                lanes(4, &|lane| ((output >> (32 * lane)) as u32).wrapping_sub(first) <= reach)
            }
        }
    }

    /// The same 16 bits in all lanes of a block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn lanes_of_16(lane: u16) -> u128 {
        u128::from(lane) * (u128::MAX / u128::from(u16::MAX))
    }

    /// The same 32 bits in all lanes of a block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn lanes_of_32(lane: u32) -> u128 {
        u128::from(lane) * (u128::MAX / u128::from(u32::MAX))
    }
}
