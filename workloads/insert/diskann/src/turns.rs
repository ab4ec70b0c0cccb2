//! What every command that lets arms take turns is told: sizes, rounds, and where prepared indexes lie.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use assay_harness::{FlagError, Flags};

/// The flags that such commands share.
#[derive(Debug, Clone)]
pub struct Turns {
    /// Vectors that an index begins with.
    pub size: usize,
    /// Rounds that are measured.
    pub rounds: usize,
    /// What an arm does in a round: so many inserts.
    pub round_inserts: usize,
    /// Queries by which the recall is measured.
    pub queries: usize,
    /// Where prepared indexes are kept.
    pub cache: Option<PathBuf>,
}

/// Vectors that an index begins with, where a command says nothing else.
pub const SIZES: (u64, RangeInclusive<u64>) = (10_000, 100..=1_000_000);

impl Turns {
    /// Takes the flags; `sizes` are the default and the bounds of `--size`.
    ///
    /// # Errors
    ///
    /// When one is of the wrong form or out of bounds.
    pub fn take(flags: &mut Flags, (size, sizes): (u64, RangeInclusive<u64>)) -> Result<Self, FlagError> {
        Ok(Self {
            size: flags.integer("size", size, sizes)? as usize,
            rounds: flags.integer("rounds", 20, 6..=10_000)? as usize,
            round_inserts: flags.integer("round-inserts", 128, 1..=10_000)? as usize,
            queries: flags.integer("queries", 200, 10..=10_000)? as usize,
            cache: flags.optional("cache").map(PathBuf::from),
        })
    }

    /// Vectors at the end, when every round inserts once and `warmup` rounds come first.
    #[must_use]
    pub fn vectors(&self, warmup: usize) -> usize {
        self.size + (warmup + self.rounds) * self.round_inserts
    }

    /// How a figure calls the size.
    #[must_use]
    pub fn name(&self) -> String {
        match self.size {
            size if size.is_multiple_of(1_000_000) => format!("{}m", size / 1_000_000),
            size if size.is_multiple_of(1000) => format!("{}k", size / 1000),
            size => size.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_called_as_people_call_it() {
        for (size, name) in [(1_000_000, "1m"), (12_000, "12k"), (1_500_000, "1500k"), (700, "700")] {
            let mut flags = Flags::parse([format!("--size={size}")]).unwrap();
            let turns = Turns::take(&mut flags, (10_000, 1..=2_000_000)).unwrap();
            assert_eq!((turns.name(), turns.vectors(2)), (name.to_owned(), size + 22 * 128));
            assert_eq!(flags.finish(), Ok(()));
        }
    }
}
