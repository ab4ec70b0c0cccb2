//! Four blocks of the database at a time: they stay in the cache while all hints pick their entries. One call of AES gives the select
//! values of a hint for all four, another the offsets of a group of hints in one of them.

use crate::database::Entries;
use crate::prf::AesPrf;

/// Blocks at a time: the select values of one output.
const BLOCKS: usize = 4;
/// Hints at a time.
const HINTS: usize = 64;

/// Adds up, for the hints from `first` on, the entries of covered blocks, and for backups the entries of all blocks.
pub(super) fn sums(prf: &AesPrf, entries: Entries, first: u32, cutoffs: &[u32], sums: &mut [u64]) {
    match entries.geometry().entry_words() {
        4 => sums_of::<4>(prf, entries, first, cutoffs, sums),
        5 => sums_of::<5>(prf, entries, first, cutoffs, sums),
        _ => sums_of::<0>(prf, entries, first, cutoffs, sums),
    }
}

/// `WORDS` are the words of an entry where the compiler shall know them, else zero.
fn sums_of<const WORDS: usize>(prf: &AesPrf, entries: Entries, first: u32, cutoffs: &[u32], sums: &mut [u64]) {
    let geometry = entries.geometry();
    let words = if WORDS == 0 { geometry.entry_words() } else { WORDS };
    let block_words = geometry.block_size() as usize * words;
    let lanes = prf.lanes().count();
    let regular = geometry.hints();
    let mut data = vec![0; BLOCKS * block_words];
    let mut selects = [0; HINTS];
    // The most there are is one output for every four hints, in each of the blocks.
    let mut offsets = [[0; HINTS / 4]; BLOCKS];
    for quad in 0..geometry.blocks().div_ceil(BLOCKS as u32) {
        let first_block = quad * BLOCKS as u32;
        // The last quad may be half a one: blocks are an even number.
        let blocks = (geometry.blocks() - first_block).min(BLOCKS as u32) as usize;
        entries.write(first_block * geometry.block_size(), &mut data[..blocks * block_words]);
        let chunks = cutoffs.chunks(HINTS).zip(sums.chunks_mut(2 * words * HINTS));
        for (id, (cutoffs, sums)) in (first..).step_by(HINTS).zip(chunks) {
            prf.select_outputs(id, quad, &mut selects[..cutoffs.len()]);
            for (block, outputs) in (first_block..).zip(&mut offsets[..blocks]) {
                let groups = cutoffs.len().div_ceil(lanes as usize);
                prf.offset_outputs(id / lanes, block, &mut outputs[..groups]);
            }
            for (i, (cutoff, pair)) in (0..).zip(cutoffs.iter().zip(sums.chunks_exact_mut(2 * words))) {
                let select = selects[i as usize];
                let (covered, every) = pair.split_at_mut(words);
                for (block, outputs) in offsets[..blocks].iter().enumerate() {
                    let offset = prf.offset_in(outputs[(i / lanes) as usize], i % lanes);
                    let mask = u64::from(AesPrf::select_in(select, block as u32) < *cutoff).wrapping_neg();
                    let at = block * block_words + offset as usize * words;
                    let entry = &data[at..at + words];
                    for (word, covered) in entry.iter().zip(covered.iter_mut()) {
                        *covered ^= word & mask;
                    }
                    // Only the sums of backups are needed over all blocks.
                    if id + i >= regular {
                        entry.iter().zip(every.iter_mut()).for_each(|(word, every)| *every ^= word);
                    }
                }
            }
        }
    }
}
