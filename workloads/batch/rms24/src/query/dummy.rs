//! The half of the blocks that the server is asked about only so that it does not know which is the real one.

use rand_chacha::ChaCha12Rng;

use super::Subset;
use crate::geometry::Place;
use crate::hints::Hints;
use crate::offline::below;
use crate::prf::AnyPrf;

/// Where the dummy half comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dummy {
    /// The document's method: the entries of another, random hint. The document's program adds that hint's extra entry,
    /// so that its dummies are one entry longer than its real halves and can be distinguished from them; here both have
    /// the same length. There remains another leak. A real half never has the wanted entry's block, and such a dummy
    /// has it half of the time, so that a server can identify it over many queries for entries of one block. It is
    /// implemented for measurement.
    Hint,
    /// The paper's: the blocks that the real half does not have, with the offsets of the real half, one after the other. An offset says
    /// nothing about the block it is used in, and the wanted entry's is not among them, but by chance.
    Complement,
}

assay_harness::choices!(Dummy { "hint" => Hint, "complement" => Complement });

/// The blocks of another hint; `None` if there is no other.
pub(super) fn of_another_hint(
    prf: &AnyPrf,
    hints: &Hints,
    subset: &mut Subset,
    places: &mut Vec<Place>,
    rng: &mut ChaCha12Rng,
) -> Option<()> {
    /// With at least one hint in 2^6 left, this many draws miss with a probability of 10^-7.
    const DRAWS: usize = 1024;
    let mut draw = || match hints.exact() {
        Some([]) => None,
        Some(slots) => Some(slots[below(rng, slots.len() as u32) as usize]),
        None => Some(below(rng, hints.slots())),
    };
    for _ in 0..DRAWS {
        let slot = draw()?;
        if hints.is_usable(slot) {
            let hint = hints.get(slot);
            subset.cover(prf, &hint);
            subset.places(prf, &hint, places, None);
            return Some(());
        }
    }
    None
}
