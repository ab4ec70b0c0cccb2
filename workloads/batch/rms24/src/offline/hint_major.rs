//! Hint by hint: its blocks and offsets, then the entries they name, wherever they are.

use crate::database::Layout;
use crate::geometry::Place;
use crate::prf::Prf;

/// Adds up, for the hints from `first` on, the entries of covered blocks and the entries of all blocks.
pub(super) fn sums(prf: &impl Prf, database: &Layout, first: u32, cutoffs: &[u32], sums: &mut [u64]) {
    let geometry = database.geometry();
    let words = geometry.entry_words();
    let blocks = geometry.blocks() as usize;
    let (mut selects, mut offsets) = (vec![0; blocks], vec![0; blocks]);
    for ((id, cutoff), pair) in (first..).zip(cutoffs).zip(sums.chunks_exact_mut(2 * words)) {
        prf.selects(id, &mut selects);
        prf.offsets(id, &mut offsets);
        let (covered, every) = pair.split_at_mut(words);
        for (block, (select, offset)) in (0..).zip(selects.iter().zip(&offsets)) {
            let entry = database.entry(Place { block, offset: *offset });
            let mask = u64::from(select < cutoff).wrapping_neg();
            for (word, (covered, every)) in entry.iter().zip(covered.iter_mut().zip(every.iter_mut())) {
                *covered ^= word & mask;
                *every ^= word;
            }
        }
    }
}
