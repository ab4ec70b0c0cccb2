//! Arms that take turns, and do their work several times in one where it is short.

use assay_harness::figures::{self, Times, WARMUP_ROUNDS};

/// What a turn takes, about, if not more; a faster arm does its work several times in a turn.
const TURN: f64 = 3e-3;
/// Repetitions of a turn, at most.
const MOST: f64 = 1000.0;

/// Lets arms take turns, forwards and backwards. `run` does an arm's work once and says how long that took.
pub(super) fn take_turns<E>(
    rounds: usize,
    arms: usize,
    mut run: impl FnMut(usize) -> Result<f64, E>,
) -> Result<Times, E> {
    let mut repeats = vec![1; arms];
    let mut turns = vec![0; arms];
    figures::take_turns(rounds, arms, |arm| {
        let mut seconds = 0.0;
        for _ in 0..repeats[arm] {
            seconds += run(arm)?;
        }
        seconds /= f64::from(repeats[arm]);
        turns[arm] += 1;
        if turns[arm] <= WARMUP_ROUNDS {
            repeats[arm] = (TURN / seconds).round().clamp(1.0, MOST) as u32;
        }
        Ok(seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
