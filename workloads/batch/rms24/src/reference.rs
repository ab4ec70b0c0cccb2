//! The scheme by definition: slow, and with nothing in it that could be wrong.

use crate::cutoff;
use crate::database::Entries;
use crate::geometry::{Geometry, Place};
use crate::hints::{Hint, Hints, NO_EXTRA};
use crate::prf::Prf;
use crate::query::{Built, Question};

/// The cutoff of a hint.
pub fn cutoff(prf: &impl Prf, geometry: Geometry, id: u32) -> u32 {
    let values: Vec<u32> = (0..geometry.blocks()).map(|block| prf.select(id, block)).collect();
    cutoff::reference(&values)
}

/// All entries of a hint: the covered ones in block order, then its extra entry.
pub fn subset(prf: &impl Prf, geometry: Geometry, hint: &Hint) -> impl Iterator<Item = Place> {
    let covered = (0..geometry.blocks()).filter(|block| hint.covers(prf.select(hint.id, *block)));
    let covered = covered.map(|block| Place { block, offset: prf.offset(hint.id, block) });
    covered.chain((hint.extra != NO_EXTRA).then(|| geometry.place(hint.extra)))
}

/// The sum of some entries.
#[must_use]
pub fn parity(entries: Entries, places: impl IntoIterator<Item = Place>) -> Vec<u64> {
    let mut sum = vec![0; entries.geometry().entry_words()];
    for place in places {
        entries.xor_into(entries.geometry().index(place), &mut sum);
    }
    sum
}

/// The places that a question asks about: one sum, or two.
#[must_use]
pub fn places(geometry: Geometry, question: &Question) -> Vec<Vec<Place>> {
    match question {
        Question::Pairs(places) => vec![places.clone()],
        Question::Halves { mask, offsets } => {
            let half = |bit: u8| {
                let blocks = (0..geometry.blocks()).filter(|block| mask[*block as usize / 8] >> (block % 8) & 1 == bit);
                blocks.zip(offsets).map(|(block, offset)| Place { block, offset: u32::from(*offset) }).collect()
            };
            vec![half(1), half(0)]
        }
    }
}

/// The entry that a query finds, with the hint's sum and the server's answer computed by definition. Of questions as pairs nothing is
/// copied: the builds that this stands between shall find the caches as they left them.
pub fn answer(prf: &impl Prf, entries: Entries, built: &Built) -> Vec<u64> {
    let geometry = entries.geometry();
    let server = match &built.questions[..] {
        [halves @ Question::Halves { .. }] => parity(entries, places(geometry, halves).swap_remove(built.real)),
        pairs => match &pairs[built.real] {
            Question::Pairs(places) => parity(entries, places.iter().copied()),
            Question::Halves { .. } => unreachable!("halves are one question"),
        },
    };
    let hint = parity(entries, subset(prf, geometry, &built.hint));
    hint.iter().zip(server).map(|(hint, server)| hint ^ server).collect()
}

/// The slots whose hints contain an entry.
pub fn candidates(prf: &impl Prf, hints: &Hints, index: u32) -> Vec<u32> {
    (0..hints.slots()).filter(|slot| hints.contains(prf, *slot, index)).collect()
}
