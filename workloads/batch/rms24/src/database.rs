//! The entries: a function of a seed and an index, and the same laid out in memory.
//!
//! Because an entry can be computed from its index, a client can check an answer, and build hints, without the database at hand.

use crate::geometry::{Geometry, Place};

/// The contents of a database, by definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries {
    seed: u64,
    geometry: Geometry,
}

impl Entries {
    /// The database that belongs to `seed`.
    #[must_use]
    pub fn new(seed: u64, geometry: Geometry) -> Self {
        Self { seed, geometry }
    }

    /// Its seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Its shape.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// One word of an entry. Beyond the database everything is zero.
    #[must_use]
    pub fn word(&self, index: u32, word: usize) -> u64 {
        if index >= self.geometry.entries() {
            return 0;
        }
        // SplitMix64: contents need to be different everywhere, not secret.
        let at = u64::from(index) * self.geometry.entry_words() as u64 + word as u64;
        let mut x = self.seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// Adds the entry to `sum`.
    pub fn xor_into(&self, index: u32, sum: &mut [u64]) {
        for (word, sum) in sum.iter_mut().enumerate() {
            *sum ^= self.word(index, word);
        }
    }

    /// The entry as bytes.
    #[must_use]
    pub fn bytes(&self, index: u32) -> Vec<u8> {
        (0..self.geometry.entry_words()).flat_map(|word| self.word(index, word).to_le_bytes()).collect()
    }

    /// Writes whole blocks, one entry after the other.
    ///
    /// # Panics
    ///
    /// When `words` is not some whole number of entries.
    pub fn write(&self, first: u32, words: &mut [u64]) {
        for (index, entry) in (first..).zip(words.chunks_exact_mut(self.geometry.entry_words())) {
            for (word, slot) in entry.iter_mut().enumerate() {
                *slot = self.word(index, word);
            }
        }
    }
}

/// All entries in memory, those of half-empty blocks included.
#[derive(Debug)]
pub struct Database {
    entries: Entries,
    words: Vec<u64>,
    huge_pages: bool,
}

impl Database {
    /// Lays out the entries.
    #[must_use]
    pub fn new(entries: Entries) -> Self {
        let geometry = entries.geometry();
        let words = geometry.blocks() as usize * geometry.block_size() as usize * geometry.entry_words();
        let mut words = vec![0_u64; words];
        let huge_pages = advise_huge_pages(&mut words);
        entries.write(0, &mut words);
        Self { entries, words, huge_pages }
    }

    /// Bytes that a database takes.
    #[must_use]
    pub fn bytes(geometry: Geometry) -> u64 {
        u64::from(geometry.blocks()) * u64::from(geometry.block_size()) * geometry.entry_size() as u64
    }

    /// What is in it.
    #[must_use]
    pub fn entries(&self) -> Entries {
        self.entries
    }

    /// Its shape.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.entries.geometry
    }

    /// All words, entry after entry.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// One entry.
    #[must_use]
    pub fn entry(&self, place: Place) -> &[u64] {
        let words = self.geometry().entry_words();
        let at = self.geometry().index(place) as usize * words;
        &self.words[at..at + words]
    }

    /// Whether the system took the advice to use huge pages.
    #[must_use]
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }
}

/// Entries are read at random: with small pages each read would miss the address translation cache, too.
fn advise_huge_pages(words: &mut [u64]) -> bool {
    const PAGE: usize = 2 << 20;
    let start = words.as_ptr() as usize;
    let (first, end) = (start.next_multiple_of(PAGE), start + size_of_val(words));
    if first + PAGE > end {
        return false;
    }
    let inside = words.as_mut_ptr().cast::<u8>().wrapping_add(first - start);
    // SAFETY: the range lies within `words`, and the advice does not change what is in it.
    unsafe { libc::madvise(inside.cast(), end - first, libc::MADV_HUGEPAGE) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_has_every_entry_in_its_place_and_zeroes_beyond_the_last() {
        let geometry = Geometry::new(1000, 40, 80);
        let entries = Entries::new(7, geometry);
        let database = Database::new(entries);
        for index in 0..geometry.blocks() * geometry.block_size() {
            let bytes: Vec<u8> = database.entry(geometry.place(index)).iter().flat_map(|w| w.to_le_bytes()).collect();
            assert_eq!(bytes, entries.bytes(index), "entry {index}");
            assert_eq!(bytes.iter().all(|byte| *byte == 0), index >= 1000, "entry {index}");
        }
    }

    #[test]
    fn another_seed_is_another_database() {
        let geometry = Geometry::new(1000, 32, 80);
        assert_ne!(Entries::new(1, geometry).bytes(0), Entries::new(2, geometry).bytes(0));
    }
}
