//! Hints to search in, without the database: what `--scope=build-query` measures needs no sums.
//!
//! Exact cutoffs for 3.4 million hints would take minutes. A search looks at a cutoff only where a hint's offset is the wanted one, so only
//! those few hints get an exact one; all others get the value that cutoffs scatter around. The search does the same work and finds the same
//! hints as if all were exact.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{below, draw_extra};
use crate::cutoff::{Cutoffs, INVALID};
use crate::geometry::{Geometry, Place};
use crate::hints::{Hints, NO_EXTRA};
use crate::prf::{AnyPrf, Prf, Secret};
use crate::search::packed;

/// The median of all possible select values.
const EXPECTED: u32 = 1 << 31;

/// Hints in which every search for one of `indices` finds what it would find in complete ones.
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
