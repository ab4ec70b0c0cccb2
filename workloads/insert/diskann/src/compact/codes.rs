//! Vectors as one byte per coordinate, a quarter of their size, for walks that need no exact distance.
//!
//! Uniform scalar quantisation: each coordinate is counted in steps from its dimension's minimum, with the same step
//! for all dimensions, so that a distance is a sum of integers (as in Faiss's `ScalarQuantizer` of type
//! `QT_8bit_uniform`; Douze et al., "The Faiss library", arXiv:2401.08281). The steps are derived from the stored
//! vectors; vectors out of range are clamped. Candidates of a walk are reordered by the vectors themselves
//! (`bounded.rs`), as in DiskANN (Subramanya et al., NeurIPS 2019).

use super::nodes::reserve;

/// Steps between the ends of the widest dimension.
const STEPS: f32 = u8::MAX as f32;

/// Size of a step and minimum of each dimension.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Steps {
    low: Vec<f32>,
    step: f32,
}

/// Learns [`Steps`] from vectors.
#[derive(Debug)]
pub(super) struct Learning {
    low: Vec<f32>,
    high: Vec<f32>,
}

impl Learning {
    /// From nothing yet.
    pub(super) fn new(dims: usize) -> Self {
        Self { low: vec![f32::INFINITY; dims], high: vec![f32::NEG_INFINITY; dims] }
    }

    /// From one vector more.
    pub(super) fn add(&mut self, vector: &[f32]) {
        for ((low, high), x) in self.low.iter_mut().zip(&mut self.high).zip(vector) {
            (*low, *high) = (low.min(*x), high.max(*x));
        }
    }

    /// Returns the learnt steps. If all vectors are equal, any step is valid.
    pub(super) fn finish(self) -> Steps {
        let widest = self.low.iter().zip(&self.high).map(|(low, high)| high - low).fold(0.0, f32::max);
        let low = self.low.into_iter().map(|low| if low.is_finite() { low } else { 0.0 }).collect();
        Steps { low, step: if widest > 0.0 && widest.is_finite() { widest / STEPS } else { 1.0 } }
    }
}

impl Steps {
    /// Appends the code of `vector` to `codes`.
    fn encode_into(&self, vector: &[f32], codes: &mut Vec<u8>) {
        // `as` clamps values out of range.
        codes.extend(vector.iter().zip(&self.low).map(|(x, low)| ((x - low) / self.step).round() as u8));
    }
}

/// The codes of vectors, one after the other.
#[derive(Debug)]
pub(super) struct Codes {
    steps: Steps,
    codes: Vec<u8>,
}

impl Codes {
    /// Without any, with room for `len`.
    pub(super) fn new(steps: Steps, len: usize) -> Self {
        Self { codes: Vec::with_capacity(len * steps.low.len()), steps }
    }

    /// Adds the next vector.
    pub(super) fn push(&mut self, vector: &[f32]) {
        let len = self.codes.len() + vector.len();
        reserve(&mut self.codes, len);
        self.steps.encode_into(vector, &mut self.codes);
    }

    /// The code of a vector that is not among them.
    pub(super) fn encode(&self, vector: &[f32]) -> Vec<u8> {
        let mut code = Vec::with_capacity(vector.len());
        self.steps.encode_into(vector, &mut code);
        code
    }

    /// The code of the vector in `slot`.
    #[inline]
    pub(super) fn code(&self, slot: u32) -> &[u8] {
        let dims = self.steps.low.len();
        &self.codes[slot as usize * dims..][..dims]
    }

    /// Converts squared steps to a squared distance.
    #[inline]
    pub(super) fn squared(&self, steps: u32) -> f32 {
        self.steps.step * self.steps.step * steps as f32
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.codes.capacity() + size_of::<f32>() * self.steps.low.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn codes(vectors: &[Vec<f32>]) -> Codes {
        let mut learning = Learning::new(vectors.first().map_or(3, Vec::len));
        vectors.iter().for_each(|vector| learning.add(vector));
        let mut codes = Codes::new(learning.finish(), vectors.len());
        vectors.iter().for_each(|vector| codes.push(vector));
        codes
    }

    proptest! {
        #[test]
        fn a_coordinate_is_off_by_half_a_step_at_most(
            vectors in prop::collection::vec(prop::collection::vec(-100.0_f32..100.0, 5), 1..40)
        ) {
            let codes = codes(&vectors);
            for (slot, vector) in (0..).zip(&vectors) {
                prop_assert_eq!(codes.code(slot), &codes.encode(vector)[..]);
                for ((x, code), low) in vector.iter().zip(codes.code(slot)).zip(&codes.steps.low) {
                    let found = low + codes.steps.step * f32::from(*code);
                    prop_assert!((found - x).abs() <= 0.501 * codes.steps.step + 1e-4, "{found} for {x}");
                }
            }
        }
    }

    #[test]
    fn out_of_range_values_are_clamped_and_an_empty_sample_is_valid() {
        let codes = codes(&[vec![0.0, 10.0], vec![255.0, 10.0]]);
        assert_eq!(codes.encode(&[-5.0, 9.0]), [0, 0]);
        assert_eq!(codes.encode(&[1e9, f32::NAN]), [255, 0]);
        assert_eq!(codes.encode(&[2.4, 12.0]), [2, 2]);
        assert_eq!((codes.squared(3), codes.memory_bytes()), (3.0, 4 + 8));
        let nothing = super::Learning::new(2).finish();
        assert_eq!(nothing, Steps { low: vec![0.0; 2], step: 1.0 });
        assert_eq!(self::codes(&[vec![4.0, 4.0]]).encode(&[4.0, 5.0]), [0, 1]);
    }
}
