//! From some slot on, around all of them, until a hint contains the entry: two block sizes of hints on average.

use super::found::Found;
use super::offset_first;
use crate::hints::Hints;
use crate::prf::ChaChaPrf;

/// The first slot from `start` on whose hint contains the entry.
pub(super) fn first(prf: &ChaChaPrf, hints: &Hints, index: u32, start: u32) -> Found {
    let mut examined = 0;
    let slot = (start..hints.slots()).chain(0..start).find(|slot| {
        examined += 1;
        offset_first::contains(prf, hints, *slot, index)
    });
    Found { slot, examined }
}
