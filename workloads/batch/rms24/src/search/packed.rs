//! One AES call asks four or eight hints at a time. A chunk of hints is looked at as a whole first: only if something in it could
//! contain the entry, which for the document's blocks is one chunk in 170, are its hints looked at one by one.

use super::found::Found;
use crate::geometry::Place;
use crate::hints::{GROUP, Hints};
use crate::prf::{AesPrf, Lanes, Prf};

/// Hints that are looked at as a whole.
const CHUNK: u32 = 256;
/// The most outputs that takes.
const OUTPUTS: usize = CHUNK as usize / 4;

/// All slots whose hints contain the entry.
pub(super) fn candidates(prf: &AesPrf, hints: &Hints, index: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut search = Search::new(prf, hints, index);
    for start in (0..hints.slots()).step_by(CHUNK as usize) {
        let end = hints.slots().min(start + CHUNK);
        let mut from = start;
        while let Some(slot) = search.next_in(from, end) {
            found.push(slot);
            // The outputs are still there, but this happens 40 times in thousands of chunks.
            from = slot + 1;
        }
    }
    found
}

/// The first slot whose hint contains the entry, from the group of hints around `start` on.
pub(super) fn first(prf: &AesPrf, hints: &Hints, index: u32, start: u32) -> Found {
    let mut search = Search::new(prf, hints, index);
    let start = start / GROUP * GROUP;
    let mut examined = 0;
    for range in [start..hints.slots(), 0..start] {
        for from in range.clone().step_by(CHUNK as usize) {
            let end = range.end.min(from + CHUNK);
            if let Some(slot) = search.next_in(from, end) {
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
    let matcher = Matcher::new(prf, place.offset);
    let mut outputs = [0; OUTPUTS];
    for start in (0..hints).step_by(CHUNK as usize) {
        let end = hints.min(start + CHUNK);
        let outputs = &mut outputs[..(end - start).div_ceil(lanes) as usize];
        prf.offset_outputs(start / lanes, place.block, outputs);
        if matcher.any(outputs) {
            let at = |slot: u32| prf.offset_in(outputs[((slot - start) / lanes) as usize], (slot - start) % lanes);
            (start..end).filter(|slot| at(*slot) == place.offset).for_each(&mut found);
        }
    }
}

struct Search<'a> {
    prf: &'a AesPrf,
    hints: &'a Hints,
    index: u32,
    place: Place,
    matcher: Matcher,
    outputs: [u128; OUTPUTS],
}

impl<'a> Search<'a> {
    fn new(prf: &'a AesPrf, hints: &'a Hints, index: u32) -> Self {
        let place = hints.geometry().place(index);
        Self { prf, hints, index, place, matcher: Matcher::new(prf, place.offset), outputs: [0; OUTPUTS] }
    }

    /// The first slot in `from..end`, at most a chunk, whose hint contains the entry.
    fn next_in(&mut self, from: u32, end: u32) -> Option<u32> {
        let lanes = self.prf.lanes().count();
        let first_group = from / lanes;
        let outputs = &mut self.outputs[..(end.div_ceil(lanes) - first_group) as usize];
        self.prf.offset_outputs(first_group, self.place.block, outputs);
        let slots = from as usize..end as usize;
        let extra = any_equal(&self.hints.extras()[slots.clone()], self.index);
        let replaced = &self.hints.replaced()[(from / GROUP) as usize..end.div_ceil(GROUP) as usize];
        let replaced = replaced.iter().fold(0, |any, byte| any | byte) != 0;
        if !(self.matcher.any(outputs) || extra || replaced) {
            return None;
        }
        let outputs = &self.outputs;
        (from..end).find(|slot| {
            if self.hints.replaced()[(slot / GROUP) as usize] >> (slot % GROUP) & 1 == 1 {
                return self.hints.contains(self.prf, *slot, self.index);
            }
            let output = outputs[(slot / lanes - first_group) as usize];
            let offset_is_right = self.prf.offset_in(output, slot % lanes) == self.place.offset;
            self.hints.is_usable(*slot)
                && (self.hints.extra(*slot) == self.index
                    || offset_is_right && self.hints.covers(*slot, self.prf.select(*slot, self.place.block)))
        })
    }
}

/// Whether any lane of many outputs has a certain offset.
struct Matcher {
    lanes: Lanes,
    /// For lanes of 16 bits: the bits that count, and what they are.
    mask: u16,
    bits: u16,
    /// For lanes of 32 bits: the values that multiplication maps to the offset.
    low: u32,
    width: u32,
}

impl Matcher {
    fn new(prf: &AesPrf, offset: u32) -> Self {
        let size = u64::from(prf.block_size());
        let start = |offset: u32| (u64::from(offset) << 32).div_ceil(size);
        let low = start(offset);
        let width = start(offset + 1) - low;
        Self {
            lanes: prf.lanes(),
            mask: (size - 1) as u16,
            bits: offset as u16,
            low: low as u32,
            // Blocks of one entry: every value.
            width: u32::try_from(width).unwrap_or(u32::MAX),
        }
    }

    fn any(&self, outputs: &[u128]) -> bool {
        match self.lanes {
            Lanes::Eight => {
                // SAFETY: every bit pattern is a number of either type.
                let (_, lanes, _) = unsafe { outputs.align_to::<u16>() };
                lanes.iter().fold(0, |any, lane| any | u16::from(lane & self.mask == self.bits)) != 0
            }
            Lanes::Four => {
                // SAFETY: every bit pattern is a number of either type.
                let (_, lanes, _) = unsafe { outputs.align_to::<u32>() };
                lanes.iter().fold(0, |any, lane| any | u32::from(lane.wrapping_sub(self.low) < self.width)) != 0
            }
        }
    }
}

fn any_equal(values: &[u32], wanted: u32) -> bool {
    values.iter().fold(0, |any, value| any | u32::from(*value == wanted)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prf::{AesPath, Secret, Wish};

    /// The look at a whole chunk must not miss a value at either end of those that mean an offset.
    #[test]
    fn a_chunk_has_a_match_exactly_if_one_of_its_lanes_has_the_offset() {
        let path = AesPath::select(Wish::Portable).unwrap();
        for block_size in [1_u32, 2, 3, 64, 363, 4096, 42_827, 46_341] {
            let prf = AesPrf::new(&Secret::from_seed(1), block_size, path);
            for offset in [0, 1, block_size / 2, block_size - 1].into_iter().filter(|offset| *offset < block_size) {
                let matcher = Matcher::new(&prf, offset);
                // The first 32-bit value that means an offset, and the one before; and the offset itself for lanes of 16 bits.
                let edge = |offset: u32| ((u64::from(offset) << 32).div_ceil(u64::from(block_size))) as u32;
                for bits in [
                    edge(offset),
                    edge(offset).wrapping_sub(1),
                    edge(offset + 1),
                    edge(offset + 1).wrapping_sub(1),
                    offset,
                ] {
                    let output = u128::from(bits) << 32;
                    let found = (0..prf.lanes().count()).any(|lane| prf.offset_in(output, lane) == offset);
                    assert_eq!(matcher.any(&[output]), found, "{bits:#x} for {offset} of {block_size}");
                }
            }
        }
    }
}
