//! One AES call asks four or eight hints at a time. A chunk of hints is looked at as a whole first: only if something in it could
//! contain the entry, which for the document's blocks is one chunk in 80, are its hints looked at one by one. Hints that have taken the
//! place of others are known by other numbers than those of their slots, and are asked one by one always.

use super::found::Found;
use crate::geometry::Place;
use crate::hints::{GROUP, Hints};
use crate::prf::{AesPrf, Lanes, Matcher, Prf};

/// Hints that are looked at as a whole.
const CHUNK: u32 = 512;
/// The most outputs that takes.
const OUTPUTS: usize = CHUNK as usize / 4;

/// All slots whose hints contain the entry.
pub(super) fn candidates(prf: &AesPrf, hints: &Hints, index: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let search = Search::new(prf, hints, index);
    for start in (0..hints.slots()).step_by(CHUNK as usize) {
        search.in_chunk(start, hints.slots().min(start + CHUNK), |slot| found.push(slot));
    }
    found
}

/// The first slot whose hint contains the entry, from the group of hints around `start` on.
pub(super) fn first(prf: &AesPrf, hints: &Hints, index: u32, start: u32) -> Found {
    let search = Search::new(prf, hints, index);
    let start = start / GROUP * GROUP;
    let mut examined = 0;
    for range in [start..hints.slots(), 0..start] {
        for from in range.clone().step_by(CHUNK as usize) {
            let end = range.end.min(from + CHUNK);
            let mut first = None;
            search.in_chunk(from, end, |slot| first = first.or(Some(slot)));
            if let Some(slot) = first {
                return Found { slot: Some(slot), examined: examined + (slot - from) + 1 };
            }
            examined += end - from;
        }
    }
    Found { slot: None, examined }
}

/// Calls `found` for every one of `hints` hints, numbered as their slots, whose offset in the block of `place` is the one of `place`.
pub fn offset_matches(prf: &AesPrf, hints: u32, place: Place, mut found: impl FnMut(u32)) {
    let lanes = prf.lanes().count();
    // The index of no entry: extra entries do not matter here.
    let matcher = prf.matcher(u32::MAX, place);
    for start in (0..hints).step_by(CHUNK as usize) {
        let end = hints.min(start + CHUNK);
        if prf.may_contain(&matcher, start / lanes, place.block, end - start, &[]) {
            let offsets = Offsets::of(prf, start, end, place.block);
            (start..end).filter(|slot| offsets.at(*slot) == place.offset).for_each(&mut found);
        }
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
        let (matcher, extra) = (prf.matcher(index, place), hints.may_have_extra(index));
        Self { prf, hints, index, place, matcher, extra }
    }

    /// Calls `found` for the slots in `from..end`, at most a chunk from the start of a group on, whose hints contain the entry, in order.
    fn in_chunk(&self, from: u32, end: u32, mut found: impl FnMut(u32)) {
        let extras = if self.extra { &self.hints.extras()[from as usize..end as usize] } else { &[] };
        let group = from / self.prf.lanes().count();
        let groups = &self.hints.replaced()[(from / GROUP) as usize..end.div_ceil(GROUP) as usize];
        if self.prf.may_contain(&self.matcher, group, self.place.block, end - from, extras) {
            let offsets = Offsets::of(self.prf, from, end, self.place.block);
            for (first, replaced) in (from..end).step_by(GROUP as usize).zip(groups) {
                if self.extra || *replaced != 0 || offsets.any_of_group(first, &self.matcher) {
                    let slots = first..end.min(first + GROUP);
                    slots.filter(|slot| self.contains(*slot, &offsets)).for_each(&mut found);
                }
            }
        } else {
            let first = from / GROUP;
            // Nearly always there is none, which takes a look at whole registers of them.
            if groups.iter().fold(0, |any, replaced| any | replaced) == 0 {
                return;
            }
            for (group, replaced) in (first..).zip(groups) {
                let mut replaced = *replaced;
                while replaced != 0 {
                    let slot = group * GROUP + replaced.trailing_zeros();
                    replaced &= replaced - 1;
                    if slot < end && self.hints.contains(self.prf, slot, self.index) {
                        found(slot);
                    }
                }
            }
        }
    }

    fn contains(&self, slot: u32, offsets: &Offsets<'_>) -> bool {
        if self.hints.replaced()[(slot / GROUP) as usize] >> (slot % GROUP) & 1 == 1 {
            return self.hints.contains(self.prf, slot, self.index);
        }
        // What was computed comes before what would be read from memory.
        let offset = offsets.at(slot) == self.place.offset;
        (offset || self.extra)
            && self.hints.is_usable(slot)
            && (self.hints.extra(slot) == self.index
                || offset && self.hints.covers(slot, self.prf.select(slot, self.place.block)))
    }
}

/// The offsets of a chunk of hints, numbered as their slots, in one block.
struct Offsets<'a> {
    prf: &'a AesPrf,
    from: u32,
    outputs: [u128; OUTPUTS],
}

impl<'a> Offsets<'a> {
    /// Those from `from`, the first hint of an output, to `end`.
    fn of(prf: &'a AesPrf, from: u32, end: u32, block: u32) -> Self {
        let lanes = prf.lanes().count();
        let mut outputs = [0; OUTPUTS];
        prf.offset_outputs(from / lanes, block, &mut outputs[..(end - from).div_ceil(lanes) as usize]);
        Self { prf, from, outputs }
    }

    /// Whether one of the slots of a group, of which `first` is the first, has the offset that is looked for.
    #[inline]
    fn any_of_group(&self, first: u32, matcher: &Matcher) -> bool {
        let lanes = self.prf.lanes().count();
        let outputs = ((first - self.from) / lanes) as usize..((first - self.from + GROUP) / lanes) as usize;
        // Beyond the last slot lie outputs that mean nothing, and hints that are looked at for nothing.
        self.outputs[outputs].iter().any(|output| matcher.is_in(*output))
    }

    #[inline]
    fn at(&self, slot: u32) -> u32 {
        let at = slot - self.from;
        // Divisors that the compiler knows.
        let (output, lane) = match self.prf.lanes() {
            Lanes::Eight => (at / 8, at % 8),
            Lanes::Four => (at / 4, at % 4),
        };
        self.prf.offset_in(self.outputs[output as usize], lane)
    }
}
