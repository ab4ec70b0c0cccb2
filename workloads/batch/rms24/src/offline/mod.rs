//! Before the first query: computing the hints, in one pass over the database.
//!
//! | way | order | for |
//! |---|---|---|
//! | [`Way::HintMajor`] | hint by hint, entries of the whole database at random | any function; the reference |
//! | [`Way::BlockMajor`] | four blocks of the database at a time, all hints | AES, where the values of four blocks or eight hints cost one call |

mod block_major;
mod hint_major;
mod prepare;

use std::thread;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::cutoff::{Cutoffs, INVALID};
use crate::database::{Entries, Layout, Pages};
use crate::geometry::{Geometry, Place};
use crate::hints::{Backups, Hints, NO_EXTRA};
use crate::prf::{AnyPrf, Prf, Secret};

pub use prepare::{prepare, wanted};

/// Everything a client keeps between queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The regular hints.
    pub hints: Hints,
    /// The backup hints.
    pub backups: Backups,
}

/// In which order the hints' sums are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Hint by hint.
    HintMajor,
    /// Four blocks of the database at a time.
    BlockMajor,
}

impl Way {
    /// The way that suits a function.
    #[must_use]
    pub fn of(prf: &AnyPrf) -> Self {
        match prf {
            AnyPrf::ChaCha(_) => Self::HintMajor,
            AnyPrf::Aes(_) => Self::BlockMajor,
        }
    }
}

/// Computes all hints with `threads` threads.
///
/// # Panics
///
/// When asked to go block by block with a function that cannot.
#[must_use]
pub fn generate(prf: &AnyPrf, secret: &Secret, entries: Entries, backups: u32, way: Way, threads: usize) -> State {
    let geometry = entries.geometry();
    let (hints, words) = (geometry.hints(), geometry.entry_words());
    let all = (hints + backups) as usize;
    let mut cutoffs = vec![0; all];
    // Two sums each: over the covered blocks, and over all blocks.
    let mut sums = vec![0; 2 * all * words];
    let database = (way == Way::HintMajor).then(|| Layout::new(entries, Pages::Huge));
    // A range of hints per thread; whole groups, so that no call of the function is made twice.
    let share = all.div_ceil(threads.max(1)).next_multiple_of(64);
    thread::scope(|scope| {
        let ranges = cutoffs.chunks_mut(share).zip(sums.chunks_mut(2 * share * words));
        for (first, (cutoffs, sums)) in (0..).step_by(share).zip(ranges) {
            let database = database.as_ref();
            let mut work = move || {
                find_cutoffs(prf, geometry, first as u32, cutoffs);
                match (database, prf) {
                    (Some(database), _) => hint_major::sums(prf, database, first as u32, cutoffs, sums),
                    (None, AnyPrf::Aes(prf)) => block_major::sums(prf, entries, first as u32, cutoffs, sums),
                    (None, AnyPrf::ChaCha(_)) => panic!("only AES goes block by block"),
                }
            };
            if threads > 1 {
                scope.spawn(work);
            } else {
                work();
            }
        }
    });

    let (regular, spare) = sums.split_at(2 * hints as usize * words);
    let mut parities: Vec<u64> = Vec::with_capacity(hints as usize * words);
    regular.chunks_exact(2 * words).for_each(|pair| parities.extend_from_slice(&pair[..words]));
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for pair in spare.chunks_exact(2 * words) {
        let (covered, every) = pair.split_at(words);
        low.extend_from_slice(covered);
        high.extend(covered.iter().zip(every).map(|(covered, every)| covered ^ every));
    }
    let backup_cutoffs = cutoffs.split_off(hints as usize);
    let extras = extras(prf, secret, geometry, &cutoffs);
    for (extra, parity) in extras.iter().zip(parities.chunks_exact_mut(words)) {
        if *extra != NO_EXTRA {
            entries.xor_into(*extra, parity);
        }
    }
    State {
        hints: Hints::new(geometry, cutoffs, extras, parities),
        backups: Backups::new(geometry, backup_cutoffs, low, high),
    }
}

fn find_cutoffs(prf: &AnyPrf, geometry: Geometry, first: u32, cutoffs: &mut [u32]) {
    let mut values = vec![0; geometry.blocks() as usize];
    let mut finder = Cutoffs::default();
    for (id, cutoff) in (first..).zip(cutoffs) {
        prf.selects(id, &mut values);
        *cutoff = finder.of(&values);
    }
}

/// For every hint an entry of a block that it does not cover.
fn extras(prf: &AnyPrf, secret: &Secret, geometry: Geometry, cutoffs: &[u32]) -> Vec<u32> {
    let mut rng = ChaCha12Rng::from_seed(secret.key("extra entries"));
    let extra = |(id, cutoff): (u32, &u32)| {
        if *cutoff == INVALID { NO_EXTRA } else { draw_extra(prf, geometry, id, *cutoff, &mut rng) }
    };
    (0..).zip(cutoffs).map(extra).collect()
}

/// An entry of a block that the hint does not cover. Half of all blocks are such.
fn draw_extra(prf: &AnyPrf, geometry: Geometry, id: u32, cutoff: u32, rng: &mut ChaCha12Rng) -> u32 {
    loop {
        let block = below(rng, geometry.blocks());
        let offset = below(rng, geometry.block_size());
        if prf.select(id, block) >= cutoff {
            return geometry.index(Place { block, offset });
        }
    }
}

/// A number below `limit`; off uniform by less than `limit / 2^64`.
pub fn below(rng: &mut ChaCha12Rng, limit: u32) -> u32 {
    ((u128::from(rng.next_u64()) * u128::from(limit)) >> 64) as u32
}
