//! One AES call asks four or eight hints at a time. Chunks of hints are looked at as a whole first: only if something in one could
//! contain the entry, which for the document's blocks is one chunk in 80, are its hints looked at one by one. Hints that have taken the
//! place of others are known by other numbers than those of their slots, and are asked one by one always.

use std::ops::Range;

use super::found::Found;
use crate::geometry::Place;
use crate::hints::{Hints, ones};
use crate::prf::{AesPrf, CHUNK, Matcher, Prf};

/// Searches begin at a multiple of this, where an output begins however many lanes it has.
const GROUP: u32 = 8;
/// Words with a bit for every hint of a chunk.
const WORDS: usize = CHUNK as usize / 64;
/// Hints whose extra entries are read, where they matter, before the hints are looked at: not many more than a search will look at.
const READ_AHEAD: u32 = 16 * CHUNK;

/// All slots whose hints contain the entry.
pub(super) fn candidates(prf: &AesPrf, hints: &Hints, index: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let search = Search::new(prf, hints, index);
    let mut from = 0;
    while from < hints.slots() {
        from = search.step(from, hints.slots(), |slot| found.push(slot));
    }
    found
}

/// The first slot whose hint contains the entry, from the group of hints around `start` on.
pub(super) fn first(prf: &AesPrf, hints: &Hints, index: u32, start: u32) -> Found {
    let search = Search::new(prf, hints, index);
    let start = start / GROUP * GROUP;
    let mut examined = 0;
    for range in [start..hints.slots(), 0..start] {
        let mut from = range.start;
        while from < range.end {
            let mut first = None;
            let next = search.step(from, range.end, |slot| first = first.or(Some(slot)));
            if let Some(slot) = first {
                return Found { slot: Some(slot), examined: examined + (slot - from) + 1 };
            }
            examined += next - from;
            from = next;
        }
    }
    Found { slot: None, examined }
}

/// Calls `found` for every one of `hints` hints, numbered as their slots, whose offset in the block of `place` is the one of `place`.
pub fn offset_matches(prf: &AesPrf, hints: u32, place: Place, mut found: impl FnMut(u32)) {
    let (lanes, matcher) = (prf.lanes().count(), prf.matcher(place.offset));
    let mut from = 0;
    while from < hints {
        from += prf.skip(&matcher, from / lanes, place.block, hints - from);
        let end = hints.min(from + CHUNK);
        slots_of(&matches(prf, &matcher, &(from..end), place.block), from..end).for_each(&mut found);
        from = end;
    }
}

struct Search<'a> {
    prf: &'a AesPrf,
    hints: &'a Hints,
    index: u32,
    place: Place,
    matcher: Matcher,
    /// Whether the entry may be the extra one of a hint.
    extra: bool,
}

impl<'a> Search<'a> {
    fn new(prf: &'a AesPrf, hints: &'a Hints, index: u32) -> Self {
        let place = hints.geometry().place(index);
        let (matcher, extra) = (prf.matcher(place.offset), hints.may_have_extra(index));
        Self { prf, hints, index, place, matcher, extra }
    }

    /// Calls `found` for the first slots from `from`, the start of a group, to `end` whose hints contain the entry, in order. Returns the
    /// slot to go on from.
    fn step(&self, from: u32, end: u32, mut found: impl FnMut(u32)) -> u32 {
        let close = self.skip(from, end);
        self.hints.replaced(from..close).filter(|slot| self.contains(*slot, false)).for_each(&mut found);
        let end = end.min(close + CHUNK);
        self.in_chunk(close..end, found);
        end
    }

    /// The slot up to which no hint of those that are there from the beginning contains the entry.
    fn skip(&self, from: u32, end: u32) -> u32 {
        let mut end = end;
        if self.extra {
            end = end.min(from + READ_AHEAD);
            let mut chunks = self.hints.extras()[from as usize..end as usize].chunks(CHUNK as usize);
            if let Some(chunk) = chunks.position(|extras| extras.contains(&self.index)) {
                end = from + chunk as u32 * CHUNK;
            }
        }
        from + self.prf.skip(&self.matcher, from / self.prf.lanes().count(), self.place.block, end - from)
    }

    /// Calls `found` for the slots of a chunk, or of less, whose hints contain the entry, in order.
    fn in_chunk(&self, slots: Range<u32>, found: impl FnMut(u32)) {
        let matches = matches(self.prf, &self.matcher, &slots, self.place.block);
        let mut asked = if self.extra { [u64::MAX; WORDS] } else { matches };
        for slot in self.hints.replaced(slots.clone()) {
            let at = slot - slots.start;
            asked[at as usize / 64] |= 1 << (at % 64);
        }
        let is_set = |at: u32| matches[at as usize / 64] >> (at % 64) & 1 == 1;
        let slots_asked = slots_of(&asked, slots.clone());
        slots_asked.filter(|slot| self.contains(*slot, is_set(slot - slots.start))).for_each(found);
    }

    /// Whether a slot's hint contains the entry. `offset` says whether the one that was there in the beginning has its offset.
    fn contains(&self, slot: u32, offset: bool) -> bool {
        if self.hints.is_replaced(slot) {
            return self.hints.contains(self.prf, slot, self.index);
        }
        (offset || self.extra)
            && self.hints.is_usable(slot)
            && (self.hints.extra(slot) == self.index
                || offset && self.hints.covers(slot, self.prf.select(slot, self.place.block)))
    }
}

/// A bit for every hint of a chunk, or of less: whether it matches in a block. Those beyond the last mean nothing.
fn matches(prf: &AesPrf, matcher: &Matcher, hints: &Range<u32>, block: u32) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    prf.matches(matcher, hints.start / prf.lanes().count(), block, &mut words[..hints.len().div_ceil(64)]);
    words
}

/// The slots of a chunk, or of less, whose bits are set, in order.
fn slots_of(words: &[u64; WORDS], slots: Range<u32>) -> impl Iterator<Item = u32> {
    ones(words, 0..CHUNK).map(move |at| slots.start + at).take_while(move |slot| *slot < slots.end)
}
