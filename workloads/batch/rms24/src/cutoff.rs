//! The median of a hint's select values: blocks below it are covered, which is exactly half of them.

/// No cutoff divides the values into halves: the two in the middle are equal. Nothing lies below it, so such a hint covers nothing.
pub const INVALID: u32 = 0;

/// Where the median of many random values almost surely lies: this many standard deviations around the middle of all values.
const SIGMAS: f64 = 6.0;

/// Finds cutoffs; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub struct Cutoffs {
    near: Vec<u32>,
}

impl Cutoffs {
    /// Returns the cutoff of `values`, whose number is even: exactly half of them are less. [`INVALID`] if it does not
    /// exist.
    ///
    /// Values far from the middle are counted, not sorted.
    ///
    /// # Panics
    ///
    /// If the number of values is odd or zero.
    pub fn of(&mut self, values: &[u32]) -> u32 {
        assert!(!values.is_empty() && values.len().is_multiple_of(2), "{} values have no middle", values.len());
        // The median of n uniform values has a standard deviation of 1 / (2 sqrt n) of their range.
        let reach = SIGMAS * 0.5 / (values.len() as f64).sqrt();
        let reach = (reach * f64::from(u32::MAX)).min(f64::from(1_u32 << 31)) as u32;
        let low = (1_u32 << 31).saturating_sub(reach);
        let width = reach.saturating_mul(2);
        self.near.resize(values.len(), 0);
        let (mut below, mut near) = (0, 0);
        for value in values {
            self.near[near] = *value;
            near += usize::from(value.wrapping_sub(low) < width);
            below += usize::from(*value < low);
        }
        let half = values.len() / 2;
        // Both values in the middle must be among the near ones.
        if below < half && half < below + near {
            upper_middle(&mut self.near[..near], half - below)
        } else {
            self.near.clear();
            self.near.extend_from_slice(values);
            upper_middle(&mut self.near, half)
        }
    }
}

/// The value of rank `rank`, if the one before it is less.
fn upper_middle(values: &mut [u32], rank: usize) -> u32 {
    let (less, cutoff, _) = values.select_nth_unstable(rank);
    let before = less.iter().max().expect("the rank is not the first");
    if before < cutoff { *cutoff } else { INVALID }
}

/// The same by sorting: the reference.
#[must_use]
pub fn reference(values: &[u32]) -> u32 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    if sorted[half - 1] < sorted[half] { sorted[half] } else { INVALID }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cutoff_equals_the_sorted_median(
            mut values in prop_oneof![
                prop::collection::vec(any::<u32>(), 2..600),
                prop::collection::vec(0_u32..4, 2..40),
                prop::collection::vec((1_u32 << 31) - 3..(1 << 31) + 3, 2..40),
            ],
        ) {
            values.truncate(values.len() & !1);
            let mut cutoffs = Cutoffs::default();
            // Called twice, because state of the first call must not matter.
            prop_assert_eq!(cutoffs.of(&values), reference(&values));
            prop_assert_eq!(cutoffs.of(&values), reference(&values));
        }
    }

    #[test]
    fn half_of_the_values_are_below_or_there_is_none() {
        let mut cutoffs = Cutoffs::default();
        assert_eq!(cutoffs.of(&[5, 1, 9, 7]), 7);
        assert_eq!(cutoffs.of(&[5, 7, 7, 9]), INVALID);
        assert_eq!(cutoffs.of(&[0, 0]), INVALID);
        assert_eq!(cutoffs.of(&[0, 1]), 1);
    }
}
