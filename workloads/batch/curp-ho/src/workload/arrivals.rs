//! Scheduled start times of an open loop, independent of the completion of earlier commands.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use super::zipf::uniform;

/// How arrivals are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spacing {
    /// Independent of each other: exponential gaps.
    Poisson,
    /// Equal gaps.
    Fixed,
}

assay_harness::choices!(Spacing { "poisson" => Poisson, "fixed" => Fixed });

/// An endless stream of times, in nanoseconds from a start.
#[derive(Debug, Clone)]
pub struct Arrivals {
    rng: ChaCha8Rng,
    spacing: Spacing,
    gap: f64,
    at: f64,
}

impl Arrivals {
    /// Arrivals at `rate` per second. Equal gaps start at an offset derived from the seed, so that streams are not in
    /// phase.
    #[must_use]
    pub fn new(seed: u64, spacing: Spacing, rate: f64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0xa771_7a15);
        let gap = 1e9 / rate;
        let at = if spacing == Spacing::Fixed { (uniform(&mut rng) - 1.0) * gap } else { 0.0 };
        Self { rng, spacing, gap, at }
    }

    /// The next arrival.
    pub fn draw(&mut self) -> u64 {
        self.at += match self.spacing {
            Spacing::Fixed => self.gap,
            Spacing::Poisson => -self.gap * (1.0 - uniform(&mut self.rng)).ln(),
        };
        self.at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spacings_keep_the_rate_and_only_one_varies() {
        for (spacing, deviation) in [(Spacing::Poisson, 1.0), (Spacing::Fixed, 0.0)] {
            let mut arrivals = Arrivals::new(1, spacing, 10_000.0);
            let times: Vec<f64> = (0..100_000).map(|_| arrivals.draw() as f64).collect();
            let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
            assert!((mean / 1e5 - 1.0).abs() < 0.02, "{spacing:?}: a gap of {mean} ns");
            assert!((spread / mean - deviation).abs() < 0.02, "{spacing:?}: a spread of {spread} ns");
        }
    }
}
