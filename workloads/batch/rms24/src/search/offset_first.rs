//! The offset is wrong for all but one hint in a block size: ask for the select value only after that.

use crate::geometry::Place;
use crate::hints::Hints;
use crate::prf::{ChaChaPrf, Prf};

/// All slots whose hints contain the entry.
pub(super) fn candidates(prf: &ChaChaPrf, hints: &Hints, index: u32) -> Vec<u32> {
    (0..hints.slots()).filter(|slot| contains(prf, hints, *slot, index)).collect()
}

/// Whether the hint in a slot contains the entry.
#[inline]
pub(super) fn contains(prf: &ChaChaPrf, hints: &Hints, slot: u32, index: u32) -> bool {
    let Place { block, offset } = hints.geometry().place(index);
    let id = hints.id(slot);
    hints.is_usable(slot)
        && (hints.extra(slot) == index || prf.offset(id, block) == offset && hints.covers(slot, prf.select(id, block)))
}
