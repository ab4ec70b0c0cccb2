//! A figure and its interval.

use crate::start::Draws;

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Rounds, or queries, that it rests on.
    pub samples: usize,
}

impl Estimate {
    /// The median, with the narrowest symmetric pair of order statistics that covers it with at least 95 %.
    ///
    /// # Panics
    ///
    /// When there are no samples.
    #[must_use]
    pub fn median(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let n = samples.len();
        let value = (samples[(n - 1) / 2] + samples[n / 2]) / 2.0;
        let rank = lower_rank(n);
        Self { value, low: samples[rank], high: samples[n - 1 - rank], samples: n }
    }

    /// The mean, with a bootstrap over samples.
    ///
    /// # Panics
    ///
    /// When there are no samples.
    #[must_use]
    pub fn mean(samples: &[f64]) -> Self {
        const RESAMPLES: usize = 2000;
        let n = samples.len();
        let value = samples.iter().sum::<f64>() / n as f64;
        let mut draws = Draws::new(95);
        let mut mean = || (0..n).map(|_| samples[(draws.draw() % n as u64) as usize]).sum::<f64>() / n as f64;
        let mut means: Vec<f64> = (0..RESAMPLES).map(|_| mean()).collect();
        means.sort_by(f64::total_cmp);
        let at = |share: f64| means[((RESAMPLES as f64 * share).ceil() as usize).clamp(1, RESAMPLES) - 1];
        // Samples that are all alike have a mean that rounds differently from sum to sum.
        let (low, high) = (at(0.025).min(value), at(0.975).max(value));
        Self { value, low, high, samples: n }
    }
}

/// The largest `k` such that the median of `n` samples lies below the one of rank `k` (from zero) with at most 2.5 %.
fn lower_rank(n: usize) -> usize {
    // P(at most k of n fair coins) <= 0.025, in logarithms because 2^-n gets small.
    let mut log_term = -(n as f64) * 2_f64.ln();
    let mut below = log_term.exp();
    let mut rank = 0;
    while below <= 0.025 {
        rank += 1;
        log_term += ((n - rank + 1) as f64 / rank as f64).ln();
        below += log_term.exp();
    }
    rank.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_has_the_textbook_ranks() {
        // For 20 samples the 6th and the 15th, for 100 the 40th and the 61st, for 6 the ends.
        assert_eq!([6, 20, 100].map(lower_rank), [0, 5, 39]);
        let estimate = Estimate::median((1..=20).map(f64::from).collect());
        assert_eq!(estimate, Estimate { value: 10.5, low: 6.0, high: 15.0, samples: 20 });
    }

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors_wide_on_either_side() {
        let samples: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let estimate = Estimate::mean(&samples);
        assert_eq!((estimate.value, estimate.samples), (0.5, 400));
        let error = 0.5 / 20.0;
        assert!((0.5 - estimate.low - 1.96 * error).abs() < 0.2 * error, "{estimate:?}");
        assert!((estimate.high - 0.5 - 1.96 * error).abs() < 0.2 * error, "{estimate:?}");
        assert_eq!(Estimate::mean(&[0.7; 3]).value, Estimate::mean(&[0.7; 3]).low);
    }
}
