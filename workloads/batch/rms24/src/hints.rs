//! A client's hints: regular hints, each for one query, and backup hints that replace them.

use std::ops::Range;

use crate::cutoff::INVALID;
use crate::geometry::{Geometry, Place};
use crate::prf::Prf;

/// No extra entry.
pub const NO_EXTRA: u32 = u32::MAX;
/// The regular hints, in slots. A hint covers half of the blocks, one entry in each, and one extra entry in a block it does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    geometry: Geometry,
    /// The number under which the pseudo-random function knows the hint.
    ids: Vec<u32>,
    /// Blocks whose select value is below are covered.
    cutoffs: Vec<u32>,
    /// Covered are the blocks that are *not* below.
    flipped: Vec<bool>,
    /// Index of the extra entry.
    extras: Vec<u32>,
    /// A filter of the extra entries.
    seen: Seen,
    /// The sum of all entries covered; empty where hints are only searched.
    parities: Vec<u64>,
    /// A bit per slot whose hint is not the one it started with, and one per word of these that is not zero: a search that looks for them
    /// reads one line where it has asked 32,768 hints.
    replaced: Vec<u64>,
    words_replaced: Vec<u64>,
    /// The slots whose cutoff is exact, if not all are.
    exact: Option<Vec<u32>>,
}

/// The numbers of the bits that are set among these, which begin and end with a word, or within one: then with all of it.
pub(crate) fn ones(words: &[u64], bits: Range<u32>) -> impl Iterator<Item = u32> {
    (bits.start / 64..bits.end.div_ceil(64)).flat_map(|at| {
        let mut word = words[at as usize];
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| 64 * at + word.trailing_zeros());
            word &= word.wrapping_sub(1);
            bit
        })
    })
}

/// A bit for every value of a hash of the entries that ever were extra ones: most of those that never were are told at one look, where
/// asking all hints reads four bytes for each. A Bloom filter (Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM
/// 1970) with one hash: of other entries it says so wrongly once in 32 to 64 times.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    words: Vec<u64>,
    /// Bits of the hash.
    bits: u32,
}

impl Seen {
    /// Bits per hint, at least.
    const PER_HINT: u64 = 32;

    fn new(extras: &[u32]) -> Self {
        let bits = Self::bits(extras.len() as u64);
        let mut seen = Self { words: vec![0; 1 << (bits - 6)], bits };
        extras.iter().for_each(|extra| seen.add(*extra));
        seen
    }

    fn bits(hints: u64) -> u32 {
        (hints * Self::PER_HINT).next_power_of_two().ilog2().clamp(6, 32)
    }

    /// Fibonacci hashing: the highest bits of the product with the golden ratio.
    fn hash(&self, extra: u32) -> (usize, u32) {
        let hash = u64::from(extra.wrapping_mul(0x9e37_79b1)) >> (32 - self.bits);
        ((hash / 64) as usize, (hash % 64) as u32)
    }

    fn add(&mut self, extra: u32) {
        let (word, bit) = self.hash(extra);
        self.words[word] |= 1 << bit;
    }

    fn may_have(&self, extra: u32) -> bool {
        let (word, bit) = self.hash(extra);
        self.words[word] >> bit & 1 == 1
    }
}

/// A hint as taken out of its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Its number.
    pub id: u32,
    /// Its cutoff.
    pub cutoff: u32,
    /// Whether it covers values at or above the cutoff.
    pub flipped: bool,
    /// Its extra entry, or [`NO_EXTRA`].
    pub extra: u32,
    /// The sum of all entries covered.
    pub parity: Vec<u64>,
}

impl Hint {
    /// Whether a block with this select value is covered.
    #[inline]
    #[must_use]
    pub fn covers(&self, select: u32) -> bool {
        (select < self.cutoff) != self.flipped
    }
}

impl Hints {
    /// Fresh hints, numbered from zero.
    #[must_use]
    pub fn new(geometry: Geometry, cutoffs: Vec<u32>, extras: Vec<u32>, parities: Vec<u64>) -> Self {
        let hints = geometry.hints();
        assert_eq!((cutoffs.len(), extras.len()), (hints as usize, hints as usize));
        Self {
            geometry,
            ids: (0..hints).collect(),
            cutoffs,
            flipped: vec![false; hints as usize],
            seen: Seen::new(&extras),
            extras,
            parities,
            replaced: vec![0; hints.div_ceil(64) as usize],
            words_replaced: vec![0; hints.div_ceil(64 * 64) as usize],
            exact: None,
        }
    }

    /// The same, with exact cutoffs in some slots only.
    #[must_use]
    pub fn with_exact(mut self, slots: Vec<u32>) -> Self {
        self.exact = Some(slots);
        self
    }

    /// The same, with the sums of all entries covered, slot after slot.
    ///
    /// # Panics
    ///
    /// When there is not one sum per slot.
    #[must_use]
    pub fn with_sums(mut self, parities: Vec<u64>) -> Self {
        assert_eq!(parities.len(), self.cutoffs.len() * self.geometry.entry_words());
        self.parities = parities;
        self
    }

    /// The shape of the database.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.geometry.hints()
    }

    /// The cutoffs of all slots.
    #[must_use]
    pub fn cutoffs(&self) -> &[u32] {
        &self.cutoffs
    }

    /// The extra entries of all slots.
    #[must_use]
    pub fn extras(&self) -> &[u32] {
        &self.extras
    }

    /// Whether an entry may be the extra one of a hint. If it is, it says so.
    #[must_use]
    pub fn may_have_extra(&self, index: u32) -> bool {
        self.seen.may_have(index)
    }

    /// Memory of that filter in bytes, for `hints` hints.
    #[must_use]
    pub fn bytes_of_extras_seen(hints: u64) -> u64 {
        1 << (Seen::bits(hints) - 3)
    }

    /// The parities of all slots.
    #[must_use]
    pub fn parities(&self) -> &[u64] {
        &self.parities
    }

    /// The slots of these that hold another hint than in the beginning, or none, in order.
    pub fn replaced(&self, slots: Range<u32>) -> impl Iterator<Item = u32> {
        let words = slots.start / 64..slots.end.div_ceil(64);
        let replaced =
            ones(&self.words_replaced, words).flat_map(|word| ones(&self.replaced, 64 * word..64 * (word + 1)));
        replaced.filter(move |slot| slots.contains(slot))
    }

    /// Reports whether a slot holds another hint than in the beginning, or none.
    #[must_use]
    pub fn is_replaced(&self, slot: u32) -> bool {
        self.replaced[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    /// The slots whose cutoff is exact; `None` if all are.
    #[must_use]
    pub fn exact(&self) -> Option<&[u32]> {
        self.exact.as_deref()
    }

    /// The number of the hint in a slot.
    #[inline]
    #[must_use]
    pub fn id(&self, slot: u32) -> u32 {
        self.ids[slot as usize]
    }

    /// The extra entry of the hint in a slot.
    #[inline]
    #[must_use]
    pub fn extra(&self, slot: u32) -> u32 {
        self.extras[slot as usize]
    }

    /// Whether the hint in a slot covers a block with this select value. An empty slot covers nothing.
    #[inline]
    #[must_use]
    pub fn covers(&self, slot: u32, select: u32) -> bool {
        (select < self.cutoffs[slot as usize]) != self.flipped[slot as usize]
    }

    /// Whether there is a hint in a slot that covers something.
    #[inline]
    #[must_use]
    pub fn is_usable(&self, slot: u32) -> bool {
        self.cutoffs[slot as usize] != INVALID
    }

    /// Whether the hint in a slot contains an entry: the definition that every search must agree with.
    pub fn contains(&self, prf: &impl Prf, slot: u32, index: u32) -> bool {
        let Place { block, offset } = self.geometry.place(index);
        let id = self.id(slot);
        self.is_usable(slot)
            && (self.extra(slot) == index
                || prf.offset(id, block) == offset && self.covers(slot, prf.select(id, block)))
    }

    /// The hint in a slot.
    #[must_use]
    pub fn get(&self, slot: u32) -> Hint {
        let (at, words) = (slot as usize, self.geometry.entry_words());
        let parity = if self.parities.is_empty() { &[] } else { &self.parities[at * words..(at + 1) * words] };
        Hint {
            id: self.ids[at],
            cutoff: self.cutoffs[at],
            flipped: self.flipped[at],
            extra: self.extras[at],
            parity: parity.to_vec(),
        }
    }

    /// Takes the hint out of a slot: it can never be found again.
    pub fn consume(&mut self, slot: u32) -> Hint {
        let hint = self.get(slot);
        let at = slot as usize;
        (self.cutoffs[at], self.flipped[at], self.extras[at]) = (INVALID, false, NO_EXTRA);
        self.replaced[at / 64] |= 1 << (at % 64);
        self.words_replaced[at / 64 / 64] |= 1 << (at / 64 % 64);
        hint
    }

    /// Puts a hint into an empty slot.
    ///
    /// # Panics
    ///
    /// When the slot is not empty.
    pub fn refill(&mut self, slot: u32, hint: Hint) {
        assert!(!self.is_usable(slot), "slot {slot} still has a hint");
        let (at, words) = (slot as usize, self.geometry.entry_words());
        self.ids[at] = hint.id;
        (self.cutoffs[at], self.flipped[at], self.extras[at]) = (hint.cutoff, hint.flipped, hint.extra);
        self.seen.add(hint.extra);
        self.parities[at * words..(at + 1) * words].copy_from_slice(&hint.parity);
    }
}

/// Hints that wait: without an extra entry, and with the sums of both halves of the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backups {
    geometry: Geometry,
    cutoffs: Vec<u32>,
    /// Sums over the blocks below the cutoff, and over the others.
    low: Vec<u64>,
    high: Vec<u64>,
    next: usize,
}

impl Backups {
    /// Backup hints, numbered after the regular ones.
    #[must_use]
    pub fn new(geometry: Geometry, cutoffs: Vec<u32>, low: Vec<u64>, high: Vec<u64>) -> Self {
        let words = cutoffs.len() * geometry.entry_words();
        assert_eq!((low.len(), high.len()), (words, words));
        Self { geometry, cutoffs, low, high, next: 0 }
    }

    /// How many there were in the beginning.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cutoffs.len()
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.cutoffs.len() - self.next
    }

    /// Their cutoffs, and the sums of both halves.
    #[must_use]
    pub fn parts(&self) -> (&[u32], &[u64], &[u64]) {
        (&self.cutoffs, &self.low, &self.high)
    }

    /// Turns the next backup into a hint that contains the entry `index` with the contents `entry`: the half that does not have the
    /// entry's block, and the entry as its extra. To the server that hint looks as random as the one that was used.
    pub fn take(&mut self, prf: &impl Prf, index: u32, entry: &[u64]) -> Option<Hint> {
        let words = self.geometry.entry_words();
        while self.next < self.cutoffs.len() {
            let at = self.next;
            self.next += 1;
            let cutoff = self.cutoffs[at];
            if cutoff == INVALID {
                continue;
            }
            let id = self.geometry.hints() + at as u32;
            let flipped = prf.select(id, self.geometry.place(index).block) < cutoff;
            let half = if flipped { &self.high } else { &self.low };
            let parity = half[at * words..(at + 1) * words].iter().zip(entry).map(|(sum, word)| sum ^ word).collect();
            return Some(Hint { id, cutoff, flipped, extra: index, parity });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn an_entry_that_was_added_is_seen_and_few_others_are() {
        for hints in [1_u32, 2, 100, 40_000] {
            let extras: Vec<u32> = (0..hints).map(|hint| hint.wrapping_mul(2_654_435_769).rotate_left(7)).collect();
            let mut seen = Seen::new(&extras);
            assert!(extras.iter().all(|extra| seen.may_have(*extra)), "{hints} hints");
            let others = (0..10_000).map(|other| other * 7 + 3).filter(|other| !extras.contains(other));
            let wrong = others.clone().filter(|other| seen.may_have(*other)).count();
            assert!(wrong * 16 < 10_000, "{hints} hints: {wrong} of 10000");
            seen.add(5);
            assert!(seen.may_have(5));
        }
    }
}
