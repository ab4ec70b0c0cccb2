//! Search for a hint that contains the wanted entry, in which the document's program spends most of its time.
//!
//! One hint in `2 * block size` contains a given entry, so that about `lambda / 2` of all hints do. The choice among
//! them does not affect privacy as long as it depends only on *which* hints contain the entry and on random bits,
//! because the other entries of a hint are independent of the wanted one. Both methods have this property:
//!
//! * *uniform*: examine all hints and choose one of those that contain the entry. The document's program does so.
//! * *early exit*: start at a random slot and take the first. The paper's algorithm and its authors' program exit early
//!   too, from a fixed start. A random start prevents a timing leak of repeated queries for the same entry. Hints after
//!   a gap are chosen more often than others; this is independent of their entries.

mod double;
mod early_exit;
mod found;
mod offset_first;
pub mod packed;

use rand_chacha::ChaCha12Rng;

use crate::hints::Hints;
use crate::offline::below;
use crate::prf::{AnyPrf, PrfKind};

pub use found::Found;

/// How a hint is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The document's: both functions for every hint, then a uniform choice.
    ChaChaDouble,
    /// The select value only where the offset is right; uniform choice.
    ChaChaOffsetFirst,
    /// The same from a random slot on, until one is found.
    ChaChaEarlyExit,
    /// Offsets of four or eight hints per AES call; all hints, uniform choice.
    AesUniform,
    /// The same from a random slot on, until one is found.
    AesPacked,
}

assay_harness::choices!(Strategy {
    "chacha-double" => ChaChaDouble,
    "chacha-offset-first" => ChaChaOffsetFirst,
    "chacha-early-exit" => ChaChaEarlyExit,
    "aes-uniform" => AesUniform,
    "aes-packed" => AesPacked,
});

impl Strategy {
    /// The function that its hints are made of.
    #[must_use]
    pub fn prf(self) -> PrfKind {
        match self {
            Self::ChaChaDouble | Self::ChaChaOffsetFirst | Self::ChaChaEarlyExit => PrfKind::ChaCha,
            Self::AesUniform | Self::AesPacked => PrfKind::Aes,
        }
    }

    /// Whether it chooses uniformly among the hints that contain the entry.
    #[must_use]
    pub fn is_uniform(self) -> bool {
        matches!(self, Self::ChaChaDouble | Self::ChaChaOffsetFirst | Self::AesUniform)
    }
}

/// Finds a hint that contains the entry `index`.
///
/// # Panics
///
/// When the strategy does not go with the function.
pub fn find(strategy: Strategy, prf: &AnyPrf, hints: &Hints, index: u32, rng: &mut ChaCha12Rng) -> Found {
    match (strategy, prf) {
        (Strategy::ChaChaDouble, AnyPrf::ChaCha(prf)) => one_of(&double::candidates(prf, hints, index), hints, rng),
        (Strategy::ChaChaOffsetFirst, AnyPrf::ChaCha(prf)) => {
            one_of(&offset_first::candidates(prf, hints, index), hints, rng)
        }
        (Strategy::ChaChaEarlyExit, AnyPrf::ChaCha(prf)) => {
            early_exit::first(prf, hints, index, below(rng, hints.slots()))
        }
        (Strategy::AesUniform, AnyPrf::Aes(prf)) => one_of(&packed::candidates(prf, hints, index), hints, rng),
        (Strategy::AesPacked, AnyPrf::Aes(prf)) => packed::first(prf, hints, index, below(rng, hints.slots())),
        _ => panic!("{} does not search hints of another function", strategy.name()),
    }
}

/// One of the candidates, each with the same probability.
fn one_of(candidates: &[u32], hints: &Hints, rng: &mut ChaCha12Rng) -> Found {
    let slot = (!candidates.is_empty()).then(|| candidates[below(rng, candidates.len() as u32) as usize]);
    Found { slot, examined: hints.slots() }
}
