//! How a database is cut into blocks, and how many hints that takes.

/// A database of `entries` entries in blocks, and the number of hints for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    entries: u32,
    entry_size: usize,
    lambda: u32,
    block_size: u32,
    blocks: u32,
}

/// Where an entry lies. In memory the block comes first: vectors of places are read as they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// The block.
    pub block: u32,
    /// The position within the block.
    pub offset: u32,
}

impl Geometry {
    /// Maximum number of entries; an index and one invalid value fit into 32 bits.
    pub const MAX_ENTRIES: u64 = 1 << 31;

    /// Blocks of `ceil(sqrt(entries))` entries, as many as needed and an even number of them.
    ///
    /// # Panics
    ///
    /// When there are no entries or too many, or an entry is not some whole 64-bit words.
    #[must_use]
    pub fn new(entries: u64, entry_size: usize, lambda: u32) -> Self {
        assert!((1..=Self::MAX_ENTRIES).contains(&entries), "{entries} entries");
        assert!(entry_size > 0 && entry_size.is_multiple_of(8), "entries of {entry_size} bytes");
        let root = entries.isqrt();
        let block_size = root + u64::from(root * root < entries);
        let blocks = entries.div_ceil(block_size).next_multiple_of(2);
        Self { entries: entries as u32, entry_size, lambda, block_size: block_size as u32, blocks: blocks as u32 }
    }

    /// Entries of the database.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Bytes of an entry.
    #[must_use]
    pub fn entry_size(&self) -> usize {
        self.entry_size
    }

    /// 64-bit words of an entry.
    #[must_use]
    pub fn entry_words(&self) -> usize {
        self.entry_size / 8
    }

    /// Hints per entry of a block. A query finds no hint with a probability of `exp(-lambda / 2)`.
    #[must_use]
    pub fn lambda(&self) -> u32 {
        self.lambda
    }

    /// Entries of a block.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Number of blocks, which is even. The last ones may be partly or completely beyond the database; entries there
    /// are zero.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Half of the blocks, which is the number covered by a hint.
    #[must_use]
    pub fn half(&self) -> usize {
        self.blocks as usize / 2
    }

    /// Regular hints.
    #[must_use]
    pub fn hints(&self) -> u32 {
        self.lambda * self.block_size
    }

    /// Where the entry `index` lies.
    #[must_use]
    pub fn place(&self, index: u32) -> Place {
        Place { block: index / self.block_size, offset: index % self.block_size }
    }

    /// The index of a place, which may be beyond the database.
    #[must_use]
    pub fn index(&self, place: Place) -> u32 {
        place.block * self.block_size + place.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_database_has_the_documents_blocks_and_hints() {
        let geometry = Geometry::new(1_834_095_877, 40, 80);
        assert_eq!((geometry.block_size(), geometry.blocks()), (42_827, 42_826));
        assert_eq!(geometry.hints(), 3_426_160);
    }

    #[test]
    fn every_entry_has_a_place_and_the_number_of_blocks_is_even() {
        for entries in (1..600).chain([1 << 16, (1 << 16) + 1, Geometry::MAX_ENTRIES]) {
            let geometry = Geometry::new(entries, 32, 80);
            let last = geometry.place(geometry.entries() - 1);
            assert!(last.block < geometry.blocks() && last.offset < geometry.block_size());
            assert_eq!(geometry.index(last), geometry.entries() - 1);
            assert!(geometry.blocks().is_multiple_of(2) && geometry.half() >= 1);
            assert!(u64::from(geometry.blocks()) * u64::from(geometry.block_size()) < u64::from(u32::MAX));
        }
    }
}
