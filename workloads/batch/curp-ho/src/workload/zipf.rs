//! Skewed keys: rank k of n comes with probability proportional to k^-s.
//!
//! Rejection-inversion after Hörmann and Derflinger (1996): no table, and any s from 0 upwards. (Go's `rand.Zipf`, which the document's
//! program used, needs s > 1; the program raised the 0.9 of its configuration to 1.01.)

use rand_chacha::rand_core::RngCore;

/// The distribution.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    n: f64,
    s: f64,
    /// The integral of the density's hull from the first rank to the last.
    first: f64,
    last: f64,
    /// Where accepting needs no further look.
    sure: f64,
}

impl Zipf {
    /// Ranks 1 to `n` with skew `s`.
    ///
    /// # Panics
    ///
    /// When there are no ranks or the skew is negative or no number.
    #[must_use]
    pub fn new(n: u64, s: f64) -> Self {
        assert!(n > 0 && s >= 0.0 && s.is_finite(), "{n} ranks with skew {s}");
        let mut zipf = Self { n: n as f64, s, first: 0.0, last: 0.0, sure: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.n + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        (-self.s * x.ln()).exp()
    }

    /// The integral of x^-s, written so that it does not lose digits near s = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.s) * log;
        log * if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 }
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = ((1.0 - self.s) * y).max(-1.0);
        (y * if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 }).exp()
    }

    /// Draws a rank, from 0.
    pub fn sample(&self, rng: &mut impl RngCore) -> u64 {
        loop {
            let u = self.last + uniform(rng) * (self.first - self.last);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }
}

/// A number from 0 up to, not including, 1.
pub(super) fn uniform(rng: &mut impl RngCore) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn ranks_come_as_often_as_the_definition_says() {
        const DRAWS: u32 = 200_000;
        for s in [0.0, 0.5, 0.9, 1.0, 1.01, 2.0] {
            for n in [1_u64, 2, 10, 1000] {
                let (zipf, mut rng) = (Zipf::new(n, s), ChaCha8Rng::seed_from_u64(1));
                let mut counts = vec![0_u32; n as usize];
                (0..DRAWS).for_each(|_| counts[zipf.sample(&mut rng) as usize] += 1);
                // The definition, added up.
                let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-s)).collect();
                let all: f64 = weights.iter().sum();
                for (k, (count, weight)) in counts.iter().zip(&weights).enumerate() {
                    let expected = f64::from(DRAWS) * weight / all;
                    let error = (f64::from(*count) - expected).abs();
                    assert!(error <= 6.0 * expected.sqrt() + 6.0, "s={s} n={n} rank {k}: {count} against {expected}");
                }
            }
        }
    }
}
