//! A histogram in constant memory, for runs of any length.

use serde::{Deserialize, Serialize};

/// Values below this are counted exactly; above it a bucket is 1/16 of its power of two wide.
const EXACT: u64 = 32;
const STEPS: u64 = EXACT / 2;

/// How often each value came, exactly for small ones and within 7 % for large ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    counts: Vec<u64>,
}

impl Tally {
    /// Counts `value`.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(all, count)| *all += count);
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The buckets that were hit: the middle of each, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> {
        let hit = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        hit.map(|(bucket, count)| (middle(bucket as u64), *count))
    }

    /// The mean of all values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.iter().map(|(value, count)| value * count as f64).sum();
        (self.count() > 0).then(|| sum / self.count() as f64)
    }

    /// The smallest value that at least the share `q` of all values does not exceed.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = (self.count() as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.iter()
            .find(|(_, count)| {
                seen += count;
                seen >= wanted
            })
            .map(|(value, _)| value)
    }
}

fn bucket(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let power = u64::from(value.ilog2());
    let step = (value >> (power - u64::from(STEPS.ilog2()))) - STEPS;
    (EXACT + (power - u64::from(EXACT.ilog2())) * STEPS + step) as usize
}

fn middle(bucket: u64) -> f64 {
    if bucket < EXACT {
        return bucket as f64;
    }
    let (power, step) = ((bucket - EXACT) / STEPS + u64::from(EXACT.ilog2()), (bucket - EXACT) % STEPS);
    let width = (1_u128 << power) as f64 / STEPS as f64;
    width * (STEPS + step) as f64 + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact_and_large_ones_close() {
        for value in (0..200).chain([1000, 150_000, 1_100_000, u64::MAX / 3, u64::MAX]) {
            let mut tally = Tally::default();
            tally.add(value);
            let (middle, count) = tally.iter().next().unwrap();
            assert_eq!(count, 1);
            if value < EXACT {
                assert_eq!(middle, value as f64);
            } else {
                assert!((middle / value as f64 - 1.0).abs() < 0.035, "{value} is counted as {middle}");
            }
            assert_eq!(tally.quantile(0.5), Some(middle));
        }
    }

    #[test]
    fn quantiles_are_values_that_were_counted() {
        let mut tally = Tally::default();
        (1..=20).for_each(|value| tally.add(value));
        let found = [0.0, 0.05, 0.06, 0.5, 0.99, 1.0].map(|q| tally.quantile(q));
        assert_eq!(found, [1.0, 1.0, 2.0, 10.0, 20.0, 20.0].map(Some));
        assert_eq!(Tally::default().quantile(0.5), None);
    }

    #[test]
    fn tallies_merge() {
        let (mut a, mut b) = (Tally::default(), Tally::default());
        [1, 1, 500].into_iter().for_each(|value| a.add(value));
        [1, 7].into_iter().for_each(|value| b.add(value));
        b.merge(&a);
        assert_eq!((b.count(), b.quantile(0.5), b.iter().next()), (5, Some(1.0), Some((1.0, 3))));
        assert_eq!(Tally::default().mean(), None);
    }
}
