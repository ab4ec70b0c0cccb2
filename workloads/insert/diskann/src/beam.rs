//! The list that a walk through the graph keeps: the closest points found so far, and which of them were expanded.

/// A point that was found. Of an id of four bytes it takes eight: inserting one moves half of the list on average.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<I> {
    /// Squared distance to the target; the sign bit marks an expanded point.
    signed: f32,
    /// Which point.
    pub id: I,
}

impl<I> Candidate<I> {
    /// Squared distance to the target.
    #[inline]
    pub fn distance(&self) -> f32 {
        self.signed.abs()
    }
}

/// At most `capacity` candidates, the closest first.
#[derive(Debug, Clone)]
pub struct Beam<I> {
    capacity: usize,
    candidates: Vec<Candidate<I>>,
    /// Every candidate before this one is expanded.
    next: usize,
}

impl<I: Copy> Beam<I> {
    /// An empty list.
    ///
    /// # Panics
    ///
    /// When it may hold nothing.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a beam holds at least one candidate");
        Self { capacity, candidates: Vec::with_capacity(capacity + 1), next: 0 }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.candidates.clear();
        self.next = 0;
    }

    /// Takes a point in if it is among the closest, and drops the farthest if there are too many. Every point is offered once.
    pub fn offer(&mut self, distance: f32, id: I) {
        let full = self.candidates.len() == self.capacity;
        if full && self.candidates.last().is_some_and(|farthest| farthest.distance() <= distance) {
            return;
        }
        let candidate = Candidate { signed: distance.abs(), id };
        if !full {
            self.candidates.push(candidate);
        }
        // Searched from the end, because late candidates belong there and lists are short.
        let mut at = self.candidates.len() - 1;
        while at > 0 && self.candidates[at - 1].distance() > distance {
            self.candidates[at] = self.candidates[at - 1];
            at -= 1;
        }
        self.candidates[at] = candidate;
        self.next = self.next.min(at);
    }

    /// The closest point that was not expanded yet; from now on it is.
    pub fn expand(&mut self) -> Option<Candidate<I>> {
        while self.candidates.get(self.next)?.signed.is_sign_negative() {
            self.next += 1;
        }
        let candidate = &mut self.candidates[self.next];
        candidate.signed = -candidate.signed;
        Some(*candidate)
    }

    /// The candidates, closest first.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate<I>] {
        &self.candidates
    }
}

/// A set of ids with open addressing, emptied in no time.
#[derive(Debug, Clone)]
pub struct IdSet {
    /// The generation in which a slot was filled, and the id.
    slots: Vec<(u32, u64)>,
    generation: u32,
    len: usize,
}

impl Default for IdSet {
    fn default() -> Self {
        Self { slots: vec![(0, 0); 4096], generation: 1, len: 0 }
    }
}

impl IdSet {
    /// Forgets every id.
    pub fn clear(&mut self) {
        self.len = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.slots.fill((0, 0));
            self.generation = 1;
        }
    }

    /// Adds `id`; says whether it is new.
    pub fn insert(&mut self, id: u64) -> bool {
        if 2 * self.len >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 20 & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.0 != self.generation {
                *slot = (self.generation, id);
                self.len += 1;
                return true;
            }
            if slot.1 == id {
                return false;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let bigger = vec![(0, 0); 2 * self.slots.len()];
        let (old, generation) = (std::mem::replace(&mut self.slots, bigger), self.generation);
        self.generation = 1;
        self.len = 0;
        for (_, id) in old.into_iter().filter(|(filled, _)| *filled == generation) {
            self.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_candidate_of_ours_takes_eight_bytes() {
        assert_eq!(size_of::<Candidate<u32>>(), 8);
    }

    proptest! {
        #[test]
        fn beam_equals_a_sorted_list(
            offers in prop::collection::vec((0_u32..50, any::<bool>()), 1..200),
            capacity in 1_usize..20
        ) {
            let mut beam = Beam::new(capacity);
            let mut model: Vec<(f32, u64, bool)> = Vec::new();
            for (id, (distance, expand)) in offers.into_iter().enumerate() {
                let distance = distance as f32;
                beam.offer(distance, id as u64);
                model.push((distance, id as u64, false));
                // Stable: of equally far points the earlier stays ahead, and the later is dropped.
                model.sort_by(|a, b| a.0.total_cmp(&b.0));
                model.truncate(capacity);
                if expand {
                    let open = model.iter_mut().find(|(_, _, expanded)| !expanded);
                    let expected = open.map(|entry| { entry.2 = true; entry.1 });
                    prop_assert_eq!(beam.expand().map(|candidate| candidate.id), expected);
                }
                let found: Vec<(f32, u64)> = beam.candidates().iter().map(|found| (found.distance(), found.id)).collect();
                let expected: Vec<(f32, u64)> = model.iter().map(|entry| (entry.0, entry.1)).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn a_set_holds_what_was_added_since_it_was_emptied(
            rounds in prop::collection::vec(prop::collection::vec(0_u64..5000, 0..3000), 1..4)
        ) {
            let mut set = IdSet::default();
            for round in rounds {
                set.clear();
                let mut model = HashSet::new();
                for id in round {
                    prop_assert_eq!(set.insert(id), model.insert(id));
                }
            }
        }
    }
}
