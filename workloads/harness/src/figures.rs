//! What a kernel's `bench` prints: figures with their intervals, from arms that take turns.
//!
//! All arms of a comparison share a process and take turns, forwards in one round, backwards in the next. Each round gives one
//! ratio; a figure is the median of the rounds' ratios with an interval from order statistics. So a slow spell of the machine that
//! hits a whole round cancels, and one that hits a single arm is one round of many.

use std::fmt::Display;
use std::io::Write;

use serde_json::{Value, json};

use crate::Stopwatch;
use crate::failure::Failure;

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Rounds, or whatever else it rests on.
    pub samples: usize,
}

impl Estimate {
    /// The median, with the narrowest symmetric pair of order statistics that covers it with at least 95 %. Fewer than six samples
    /// have no such pair: their ends are returned.
    ///
    /// # Panics
    ///
    /// When there are no samples.
    #[must_use]
    pub fn median(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let n = samples.len();
        let value = f64::midpoint(samples[(n - 1) / 2], samples[n / 2]);
        let rank = lower_rank(n);
        Self { value, low: samples[rank], high: samples[n - 1 - rank], samples: n }
    }
}

/// The largest `k` such that the median of `n` samples lies below the one of rank `k` (from zero) with at most 2.5 %.
fn lower_rank(n: usize) -> usize {
    // P(at most k of n fair coins) <= 0.025, in logarithms because 2^-n gets small.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut below = log_term.exp();
    let mut rank = 0;
    while below <= 0.025 {
        rank += 1;
        log_term += ((n - rank + 1) as f64 / rank as f64).ln();
        below += log_term.exp();
    }
    rank.saturating_sub(1)
}

/// Where the figures of a kernel go.
pub struct Printer<'a> {
    kernel: &'static str,
    out: &'a mut dyn Write,
}

impl<'a> Printer<'a> {
    /// Prints the figures of `kernel` to `out`.
    pub fn new(kernel: &'static str, out: &'a mut dyn Write) -> Self {
        Self { kernel, out }
    }

    /// Says on standard error what is being done.
    pub fn progress(&self, message: impl Display) {
        eprintln!("{} bench: {message}", self.kernel);
    }

    /// Prints a figure as one line of JSON, and at once: a figure that took minutes is not lost with what comes after it.
    ///
    /// # Errors
    ///
    /// When the output is gone.
    pub fn print(&mut self, figure: impl Display, unit: &str, estimate: Estimate) -> Result<(), Failure> {
        let Estimate { value, low, high, samples } = estimate;
        let (figure, unit) = (Value::from(figure.to_string()), Value::from(unit));
        let [value, low, high] = [value, low, high].map(|number| json!(number));
        writeln!(
            self.out,
            r#"{{"figure":{figure},"value":{value},"unit":{unit},"low":{low},"high":{high},"samples":{samples}}}"#
        )?;
        Ok(self.out.flush()?)
    }
}

/// Seconds of every arm in every round.
#[derive(Debug)]
pub struct Times(pub Vec<Vec<f64>>);

/// Rounds that are run and forgotten.
pub const WARMUP_ROUNDS: usize = 2;

/// The arms in the order of a round.
pub fn in_turn(round: usize, arms: usize) -> impl Iterator<Item = usize> {
    (0..arms).map(move |turn| if round.is_multiple_of(2) { turn } else { arms - 1 - turn })
}

/// Lets arms take turns. `run` does an arm's work and says how many seconds that took.
///
/// # Errors
///
/// The first that `run` returns.
pub fn take_turns<E>(rounds: usize, arms: usize, mut run: impl FnMut(usize) -> Result<f64, E>) -> Result<Times, E> {
    let mut times = vec![Vec::with_capacity(rounds); arms];
    for round in 0..WARMUP_ROUNDS + rounds {
        for arm in in_turn(round, arms) {
            let seconds = run(arm)?;
            if round >= WARMUP_ROUNDS {
                times[arm].push(seconds);
            }
        }
    }
    Ok(Times(times))
}

impl Times {
    /// The median of the rounds' ratios.
    ///
    /// # Panics
    ///
    /// When there is no such arm, or no round.
    #[must_use]
    pub fn ratio(&self, numerator: usize, denominator: usize) -> Estimate {
        Estimate::median(self.0[numerator].iter().zip(&self.0[denominator]).map(|(n, d)| n / d).collect())
    }

    /// The median of an arm's seconds, times a factor.
    ///
    /// # Panics
    ///
    /// When there is no such arm, or no round.
    #[must_use]
    pub fn median(&self, arm: usize, factor: f64) -> Estimate {
        Estimate::median(self.0[arm].iter().map(|seconds| seconds * factor).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_has_the_textbook_ranks() {
        // Of 6 samples the ends, of 11 the 2nd and the 10th, of 20 the 6th and the 15th, of 100 the 40th and the 61st.
        assert_eq!([6, 11, 20, 100].map(lower_rank), [0, 1, 5, 39]);
        let estimate = Estimate::median((1..=20).map(f64::from).collect());
        assert_eq!(estimate, Estimate { value: 10.5, low: 6.0, high: 15.0, samples: 20 });
    }

    #[test]
    fn arms_take_turns_forwards_and_backwards() {
        let mut order = Vec::new();
        let times = take_turns(2, 3, |arm| {
            order.push(arm);
            Ok::<_, ()>(1.0 + arm as f64)
        });
        let times = times.unwrap();
        assert_eq!(order[WARMUP_ROUNDS * 3..], [0, 1, 2, 2, 1, 0]);
        assert!(times.0.iter().all(|arm| arm.len() == 2));
        assert_eq!((times.ratio(1, 0).value, times.median(2, 1e3).value), (2.0, 3000.0));
        assert!(take_turns(1, 1, |_| Err::<f64, _>("no")).is_err());
    }

    #[test]
    fn a_figure_is_one_line_of_json() {
        let mut out = Vec::new();
        let estimate = Estimate { value: 1.5, low: 1.0, high: 2.0, samples: 20 };
        Printer::new("it", &mut out).print("a \"b\"", "x", estimate).unwrap();
        assert!(out.ends_with(b"}\n"));
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            line,
            json!({"figure": "a \"b\"", "value": 1.5, "unit": "x", "low": 1.0, "high": 2.0, "samples": 20})
        );
    }
}
