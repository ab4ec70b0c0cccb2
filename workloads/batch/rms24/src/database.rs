//! The entries: a function of a seed and an index, and the same laid out in memory.
//!
//! Because an entry can be computed from its index, a client can check an answer, and build hints, without the database at hand.

use assay_harness::machine;

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

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Where a server takes entries from.
#[derive(Debug)]
pub enum Database {
    /// All entries in memory, those of half-empty blocks included.
    Memory(Layout),
    /// Each entry is computed when it is asked for: a database that would not fit into memory.
    Computed(Entries),
}

impl Database {
    /// Bytes that a database takes in memory.
    #[must_use]
    pub fn bytes(geometry: Geometry) -> u64 {
        Layout::words_of(geometry) as u64 * 8 + HUGE_PAGE as u64
    }

    /// Its entries.
    #[must_use]
    pub fn entries(&self) -> Entries {
        match self {
            Self::Memory(layout) => layout.entries,
            Self::Computed(entries) => *entries,
        }
    }

    /// Its shape.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.entries().geometry
    }

    /// Whether at least half of its memory is on huge pages, as reported by the system.
    #[must_use]
    pub fn huge_pages(&self) -> bool {
        match self {
            Self::Memory(layout) => layout.huge_pages,
            Self::Computed(_) => false,
        }
    }
}

/// Which pages a database lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge ones, where the system has them: with small ones most random reads miss the address translation cache, too.
    Huge,
    /// Small ones, also where the system would take huge ones by itself.
    Small,
}

/// All entries in memory, from the start of a huge page on: so an entry of 32 bytes lies in one cache line, and not in two as every other
/// does where the memory of a vector begins.
#[derive(Debug)]
pub struct Layout {
    entries: Entries,
    room: Vec<u64>,
    /// Where in `room` the first entry is.
    start: usize,
    huge_pages: bool,
}

impl Layout {
    /// Lays out the entries.
    #[must_use]
    pub fn new(entries: Entries, pages: Pages) -> Self {
        let words = Self::words_of(entries.geometry());
        let mut room = vec![0_u64; words + HUGE_PAGE / 8];
        let start = room.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE / 8);
        advise(&mut room[start..], pages);
        entries.write(0, &mut room[start..start + words]);
        // The advice can succeed without free huge pages, so that the mapping's reported state is used.
        let huge = machine::huge_page_bytes(&room[start..start + words]).unwrap_or(0);
        Self { entries, room, start, huge_pages: 2 * huge >= 8 * words as u64 }
    }

    fn words_of(geometry: Geometry) -> usize {
        geometry.blocks() as usize * geometry.block_size() as usize * geometry.entry_words()
    }

    /// Its shape.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.entries.geometry
    }

    /// All words, entry after entry.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.room[self.start..self.start + Self::words_of(self.geometry())]
    }

    /// One entry.
    #[must_use]
    pub fn entry(&self, place: Place) -> &[u64] {
        let words = self.geometry().entry_words();
        let at = self.geometry().index(place) as usize * words;
        &self.words()[at..at + words]
    }
}

/// Advises the system, which need not follow. The words start with a huge page.
fn advise(words: &mut [u64], pages: Pages) {
    let bytes = size_of_val(words);
    if bytes < HUGE_PAGE {
        return;
    }
    let advice = if pages == Pages::Huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // SAFETY: the range is that of `words`, and the advice does not change its contents.
    unsafe { libc::madvise(words.as_mut_ptr().cast(), bytes, advice) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_has_every_entry_in_its_place_and_zeroes_beyond_the_last() {
        let geometry = Geometry::new(1000, 40, 80);
        let entries = Entries::new(7, geometry);
        let database = Layout::new(entries, Pages::Small);
        for index in 0..geometry.blocks() * geometry.block_size() {
            let bytes: Vec<u8> = database.entry(geometry.place(index)).iter().flat_map(|w| w.to_le_bytes()).collect();
            assert_eq!(bytes, entries.bytes(index), "entry {index}");
            assert_eq!(bytes.iter().all(|byte| *byte == 0), index >= 1000, "entry {index}");
        }
    }

    #[test]
    fn huge_pages_are_reported_by_the_system() {
        let layout = |pages| Layout::new(Entries::new(7, Geometry::new(1 << 18, 40, 80)), pages);
        assert!(!layout(Pages::Small).huge_pages);
        let huge = layout(Pages::Huge);
        let given = machine::huge_page_bytes(huge.words()).unwrap_or(0);
        assert_eq!(huge.huge_pages, 2 * given >= size_of_val(huge.words()) as u64, "{given} bytes");
    }

    #[test]
    fn an_entry_of_32_bytes_lies_in_one_cache_line() {
        let database = Layout::new(Entries::new(7, Geometry::new(1 << 18, 32, 80)), Pages::Huge);
        assert_eq!(database.words().as_ptr() as usize % HUGE_PAGE, 0);
        for index in [0, 1, 2, 3, 1000, (1 << 18) - 1] {
            let start = database.entry(database.geometry().place(index)).as_ptr() as usize;
            assert_eq!(start / 64, (start + 31) / 64, "entry {index}");
        }
    }

    #[test]
    fn another_seed_is_another_database() {
        let geometry = Geometry::new(1000, 32, 80);
        assert_ne!(Entries::new(1, geometry).bytes(0), Entries::new(2, geometry).bytes(0));
    }
}
