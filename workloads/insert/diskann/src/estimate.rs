//! The mean of samples and where its interval begins.

use crate::start::Draws;

/// A mean and where its 95 % interval begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
}

/// The mean, with a bootstrap over samples.
///
/// # Panics
///
/// When there are no samples.
#[must_use]
pub fn mean(samples: &[f64]) -> Mean {
    const RESAMPLES: usize = 2000;
    let n = samples.len();
    let value = samples.iter().sum::<f64>() / n as f64;
    let mut draws = Draws::new(95);
    let mut mean = || (0..n).map(|_| samples[(draws.draw() % n as u64) as usize]).sum::<f64>() / n as f64;
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| mean()).collect();
    means.sort_by(f64::total_cmp);
    // A fortieth lies below. Samples that are all alike have a mean that rounds differently from sum to sum.
    Mean { value, low: means[RESAMPLES / 40 - 1].min(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_begins_about_two_standard_errors_below_it() {
        let samples: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let estimate = mean(&samples);
        assert_eq!(estimate.value, 0.5);
        let error = 0.5 / 20.0;
        assert!((0.5 - estimate.low - 1.96 * error).abs() < 0.2 * error, "{estimate:?}");
        assert_eq!(mean(&[0.7; 3]).value, mean(&[0.7; 3]).low);
    }
}
