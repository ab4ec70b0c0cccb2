//! Hints for entries that are known beforehand, sufficient for `--scope=build-query` and `--hints=wanted`.
//!
//! Exact cutoffs for 3.4 million hints would take minutes, and their sums hours. A search reads a cutoff only if a
//! hint's offset is the wanted one. Only those few hints get exact cutoffs, and all others the expected value. The
//! search does the same work and finds the same hints as with exact cutoffs.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{State, below, draw_extra, find_cutoffs};
use crate::cutoff::{Cutoffs, INVALID};
use crate::database::Entries;
use crate::geometry::{Geometry, Place};
use crate::hints::{Backups, Hints, NO_EXTRA};
use crate::prf::{AnyPrf, Prf, Secret};
use crate::search::packed;

/// The median of all possible select values.
const EXPECTED: u32 = 1 << 31;

/// Hints with which every search for one of `indices` has the same result as with complete ones.
#[must_use]
pub fn prepare(prf: &AnyPrf, secret: &Secret, geometry: Geometry, indices: &[u32]) -> Hints {
    let mut rng = ChaCha12Rng::from_seed(secret.key("extra entries"));
    let hints = geometry.hints();
    let mut extras: Vec<u32> = (0..hints)
        .map(|_| {
            let (block, offset) = (below(&mut rng, geometry.blocks()), below(&mut rng, geometry.block_size()));
            geometry.index(Place { block, offset })
        })
        .collect();
    let mut exact: Vec<u32> = Vec::new();
    // All entries of a block ask for the same offsets: the document's queries are all in the first block.
    let mut wanted: Vec<Place> = indices.iter().map(|index| geometry.place(*index)).collect();
    wanted.sort_unstable_by_key(|place| (place.block, place.offset));
    for places in wanted.chunk_by(|a, b| a.block == b.block) {
        let is_wanted = |offset| places.binary_search_by_key(&offset, |place| place.offset).is_ok();
        match prf {
            AnyPrf::ChaCha(prf) => {
                exact.extend((0..hints).filter(|slot| is_wanted(prf.offset(*slot, places[0].block))))
            }
            AnyPrf::Aes(prf) => {
                for place in places {
                    packed::offset_matches(prf, hints, *place, |slot| exact.push(slot));
                }
            }
        }
    }
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    exact.extend((0..hints).filter(|slot| sorted.binary_search(&extras[*slot as usize]).is_ok()));
    exact.sort_unstable();
    exact.dedup();

    let mut cutoffs = vec![EXPECTED; hints as usize];
    let mut values = vec![0; geometry.blocks() as usize];
    let mut finder = Cutoffs::default();
    for slot in &exact {
        prf.selects(*slot, &mut values);
        let cutoff = finder.of(&values);
        cutoffs[*slot as usize] = cutoff;
        // An extra entry lies in a block that the hint does not cover.
        let extra = &mut extras[*slot as usize];
        if cutoff == INVALID {
            *extra = NO_EXTRA;
        } else if values[geometry.place(*extra).block as usize] < cutoff {
            *extra = draw_extra(prf, geometry, *slot, cutoff, &mut rng);
        }
    }
    exact.retain(|slot| cutoffs[*slot as usize] != INVALID);
    Hints::new(geometry, cutoffs, extras, Vec::new()).with_exact(exact)
}

/// Like [`prepare`], with the sums of the hints that a search can find and with as many backup hints. One query for
/// each of `indices` has the same result as with complete hints.
#[must_use]
pub fn wanted(prf: &AnyPrf, secret: &Secret, entries: Entries, backups: u32, indices: &[u32]) -> State {
    let geometry = entries.geometry();
    let words = geometry.entry_words();
    let hints = prepare(prf, secret, geometry, indices);
    let mut sums = Sums::new(prf, entries);
    let mut parities = vec![0; hints.slots() as usize * words];
    for slot in hints.exact().into_iter().flatten() {
        let at = *slot as usize * words;
        let parity = &mut parities[at..at + words];
        parity.copy_from_slice(&sums.of(*slot, hints.get(*slot).cutoff).0);
        if hints.extra(*slot) != NO_EXTRA {
            entries.xor_into(hints.extra(*slot), parity);
        }
    }
    let mut cutoffs = vec![0; backups as usize];
    find_cutoffs(prf, geometry, hints.slots(), &mut cutoffs);
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for (id, cutoff) in (hints.slots()..).zip(&cutoffs) {
        let (low, high) = sums.of(id, *cutoff);
        lows.extend(low);
        highs.extend(high);
    }
    State { hints: hints.with_sums(parities), backups: Backups::new(geometry, cutoffs, lows, highs) }
}

/// Sums of single hints from computed entries.
struct Sums<'a> {
    prf: &'a AnyPrf,
    entries: Entries,
    selects: Vec<u32>,
    offsets: Vec<u32>,
}

impl<'a> Sums<'a> {
    fn new(prf: &'a AnyPrf, entries: Entries) -> Self {
        let blocks = entries.geometry().blocks() as usize;
        Self { prf, entries, selects: vec![0; blocks], offsets: vec![0; blocks] }
    }

    /// Over the blocks below the cutoff, and over the others.
    fn of(&mut self, id: u32, cutoff: u32) -> (Vec<u64>, Vec<u64>) {
        let geometry = self.entries.geometry();
        self.prf.selects(id, &mut self.selects);
        self.prf.offsets(id, &mut self.offsets);
        let (mut low, mut high) = (vec![0; geometry.entry_words()], vec![0; geometry.entry_words()]);
        for (block, (select, offset)) in (0..).zip(self.selects.iter().zip(&self.offsets)) {
            let sum = if *select < cutoff { &mut low } else { &mut high };
            self.entries.xor_into(geometry.index(Place { block, offset: *offset }), sum);
        }
        (low, high)
    }
}
