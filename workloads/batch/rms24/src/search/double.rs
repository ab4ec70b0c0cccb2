//! The document's search, which sets up a cipher twice for every hint, regardless of the first value.

use std::hint::black_box;

use crate::geometry::Place;
use crate::hints::Hints;
use crate::prf::{ChaChaPrf, Prf};

/// All slots whose hints contain the entry.
pub(super) fn candidates(prf: &ChaChaPrf, hints: &Hints, index: u32) -> Vec<u32> {
    let Place { block, offset } = hints.geometry().place(index);
    let mut found = Vec::new();
    for slot in (0..hints.slots()).filter(|slot| hints.is_usable(*slot)) {
        let id = hints.id(slot);
        // The compiler shall not find out that one of the two is rarely needed.
        let (select, at) = (black_box(prf.select(id, block)), black_box(prf.offset(id, block)));
        if hints.extra(slot) == index || hints.covers(slot, select) && at == offset {
            found.push(slot);
        }
    }
    found
}
