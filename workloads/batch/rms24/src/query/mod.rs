//! Builds a query from a hint.
//!
//! A hint covers half of the blocks. Without the wanted entry, but with the hint's extra entry in its place, that is
//! half of the blocks again, one entry in each: the *real* half. The server returns its sum, and the difference to the
//! hint's sum is the wanted entry. Because the real half never has the wanted entry's block, the server must get a
//! *dummy* half as well.

mod dummy;
mod question;
mod subset;

pub use dummy::Dummy;
pub use question::Question;
pub use subset::Subset;

use rand_chacha::ChaCha12Rng;

use crate::geometry::{Geometry, Place};
use crate::hints::{Hint, Hints, NO_EXTRA};
use crate::offline::below;
use crate::prf::AnyPrf;
use crate::search::{self, Found, Strategy};

/// How a question is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The document's: two questions, real and dummy, each a list of places.
    Pairs,
    /// The paper's: one question with both halves.
    Halves,
}

assay_harness::choices!(Encoding { "pairs" => Pairs, "halves" => Halves });

/// How queries are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How a hint is found.
    pub strategy: Strategy,
    /// Where the dummy half comes from.
    pub dummy: Dummy,
    /// How it is written down.
    pub encoding: Encoding,
}

/// A query on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The wanted entry.
    pub index: u32,
    /// The slot that the hint came from, now empty.
    pub slot: u32,
    /// The hint. It is used up.
    pub hint: Hint,
    /// The questions to the server.
    pub questions: Vec<Question>,
    /// Which of the sums that come back is the real half's: of the two questions, or of the two halves.
    pub real: usize,
}

/// Builds queries; keeps its memory from one to the next, and takes back that of questions that were sent.
#[derive(Debug)]
pub struct Builder {
    plan: Plan,
    geometry: Geometry,
    subset: Subset,
    rng: ChaCha12Rng,
    examined: u64,
    spare: Spare,
}

/// Memory of earlier questions.
#[derive(Debug, Default)]
struct Spare {
    places: Vec<Vec<Place>>,
    halves: Vec<(Vec<u8>, Vec<u16>)>,
}

impl Builder {
    /// A builder whose random choices come from `rng`.
    #[must_use]
    pub fn new(plan: Plan, geometry: Geometry, rng: ChaCha12Rng) -> Self {
        Self { plan, geometry, subset: Subset::new(geometry), rng, examined: 0, spare: Spare::default() }
    }

    /// How many hints all searches looked at.
    #[must_use]
    pub fn examined(&self) -> u64 {
        self.examined
    }

    /// Takes back a question that was sent: the next query is written into its memory.
    pub fn recycle(&mut self, question: Question) {
        match question {
            Question::Pairs(places) => self.spare.places.push(places),
            Question::Halves { mask, offsets } => self.spare.halves.push((mask, offsets)),
        }
    }

    /// Uses up a hint for the entry `index`. `None` if no hint contains it.
    pub fn build(&mut self, prf: &AnyPrf, hints: &mut Hints, index: u32) -> Option<Built> {
        let Found { slot, examined } = search::find(self.plan.strategy, prf, hints, index, &mut self.rng);
        self.examined += u64::from(examined);
        let slot = slot?;
        let hint = hints.consume(slot);
        self.subset.cover(prf, &hint);
        self.subset.remove(self.geometry.place(index).block);
        let extra = Some(hint.extra).filter(|extra| *extra != NO_EXTRA && *extra != index);
        let extra = extra.map(|extra| self.geometry.place(extra));
        extra.iter().for_each(|extra| self.subset.insert(extra.block));
        let [mut places, mut others] = [(), ()].map(|()| self.spare.places.pop().unwrap_or_default());
        let complement = self.plan.encoding == Encoding::Pairs && self.plan.dummy == Dummy::Complement;
        self.subset.places(prf, &hint, &mut places, complement.then_some(&mut others));
        if let Some(extra) = extra {
            let at = places.binary_search_by_key(&extra.block, |place| place.block).expect("it was put in");
            places[at] = extra;
            if complement {
                others[at].offset = extra.offset;
            }
        }
        // The server must not be able to distinguish the halves by their order.
        let real = below(&mut self.rng, 2) as usize;
        let questions = match self.plan.encoding {
            Encoding::Pairs => {
                if self.plan.dummy == Dummy::Hint {
                    dummy::of_another_hint(prf, hints, &mut self.subset, &mut others, &mut self.rng)?;
                }
                let mut questions = vec![Question::Pairs(places), Question::Pairs(others)];
                questions.rotate_left(real);
                questions
            }
            Encoding::Halves => {
                let (mut mask, mut offsets) = self.spare.halves.pop().unwrap_or_default();
                self.subset.mask(real == 1, &mut mask);
                offsets.clear();
                offsets.extend(places.iter().map(|place| place.offset as u16));
                self.spare.places.extend([places, others]);
                vec![Question::Halves { mask, offsets }]
            }
        };
        Some(Built { index, slot, hint, questions, real })
    }
}
