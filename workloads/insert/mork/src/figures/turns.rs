//! Arms that take turns, and what their times say.

/// Rounds that are run and forgotten.
const WARMUP_ROUNDS: usize = 2;
/// What a turn takes, about, if not more; a faster arm does its work several times in a turn.
const TURN: f64 = 3e-3;
/// Repetitions of a turn, at most.
const MOST: f64 = 1000.0;

/// Mean seconds of every arm in every round.
#[derive(Debug)]
pub(super) struct Times(Vec<Vec<f64>>);

/// Lets arms take turns, forwards and backwards. `run` does an arm's work once and says how long that took.
pub(super) fn take_turns<E>(
    rounds: usize,
    arms: usize,
    mut run: impl FnMut(usize) -> Result<f64, E>,
) -> Result<Times, E> {
    let mut times = vec![Vec::with_capacity(rounds); arms];
    let mut repeats = vec![1; arms];
    for round in 0..WARMUP_ROUNDS + rounds {
        for turn in 0..arms {
            let arm = if round % 2 == 0 { turn } else { arms - 1 - turn };
            let mut seconds = 0.0;
            for _ in 0..repeats[arm] {
                seconds += run(arm)?;
            }
            seconds /= f64::from(repeats[arm]);
            if round < WARMUP_ROUNDS {
                repeats[arm] = (TURN / seconds).round().clamp(1.0, MOST) as u32;
            } else {
                times[arm].push(seconds);
            }
        }
    }
    Ok(Times(times))
}

impl Times {
    /// The median of the rounds' ratios.
    pub(super) fn ratio(&self, numerator: usize, denominator: usize) -> Estimate {
        Estimate::median(self.0[numerator].iter().zip(&self.0[denominator]).map(|(n, d)| n / d).collect())
    }

    /// The median of an arm's times over its items, in nanoseconds.
    pub(super) fn per_item(&self, arm: usize, items: f64) -> Estimate {
        Estimate::median(self.0[arm].iter().map(|seconds| seconds * 1e9 / items).collect())
    }
}

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) samples: usize,
}

impl Estimate {
    /// The median, with the narrowest symmetric pair of order statistics that covers it with at least 95 %.
    fn median(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let n = samples.len();
        let value = f64::midpoint(samples[(n - 1) / 2], samples[n / 2]);
        let rank = lower_rank(n);
        Self { value, low: samples[rank], high: samples[n - 1 - rank], samples: n }
    }
}

/// The largest rank, from zero, below which the median of the population lies with at most 2.5 %: as many fair coins of
/// `n` would show heads.
fn lower_rank(n: usize) -> usize {
    let (mut rank, mut below) = (0, 0.0);
    // Binomial coefficients in logarithms, because 2^-n gets small.
    let mut log = -(n as f64) * std::f64::consts::LN_2;
    for heads in 0..n {
        below += log.exp();
        if below > 0.025 {
            break;
        }
        rank = heads;
        log += ((n - heads) as f64 / (heads + 1) as f64).ln();
    }
    rank
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
    fn arms_take_turns_forwards_and_backwards() {
        let mut order = Vec::new();
        let times = take_turns(2, 3, |arm| {
            order.push(arm);
            Ok::<_, ()>(1.0 + arm as f64)
        });
        let times = times.unwrap();
        assert_eq!(order[WARMUP_ROUNDS * 3..], [0, 1, 2, 2, 1, 0]);
        assert_eq!(times.ratio(1, 0).value, 2.0);
        assert_eq!(times.per_item(2, 3.0).value, 1e9);
    }

    #[test]
    fn a_fast_arm_repeats_its_work_within_a_turn() {
        let mut calls = [0, 0];
        let times = take_turns(1, 2, |arm| {
            calls[arm] += 1;
            Ok::<_, ()>([TURN / 8.0, 1.0][arm])
        });
        assert_eq!(calls, [1 + 8 + 8, 3]);
        let Times(means) = times.unwrap();
        assert!((means[0][0] - TURN / 8.0).abs() < 1e-9 && means[1] == [1.0], "{means:?}");
        assert!(take_turns(1, 1, |_| Err::<f64, _>("no")).is_err());
    }
}
