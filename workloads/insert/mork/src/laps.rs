//! Where the time goes within an iteration: a stopwatch that is read between two phases, or none at all.
//!
//! Reading a clock takes some twenty nanoseconds. That is nothing beside a 4 GiB allocation and a fifth of a fast
//! insertion, so the code that is measured is generic over whether the clock is there.

use std::time::Instant;

use assay_harness::Phases;

/// A part of the measured region, in the order in which they are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Making a fresh environment, and dropping it.
    Construct,
    /// Looking values up in a cache of their bytes, and putting them there.
    Cache,
    /// From a value to text, or to bytes where there is no text.
    Serialise,
    /// Getting a scratch buffer, touching it, giving it back.
    Scratch,
    /// From text to bytes.
    Parse,
    /// Into the store, locks and copies included.
    Insert,
    /// Rules only: counting them and finding them by their heads.
    Index,
}

assay_harness::choices!(Phase {
    "construct" => Construct,
    "cache" => Cache,
    "serialise" => Serialise,
    "scratch" => Scratch,
    "parse" => Parse,
    "insert" => Insert,
    "index" => Index,
});

/// How many there are.
const PHASES: usize = Phase::CHOICES.len();

/// Something that is notified where one phase ends and the next begins.
pub trait Laps {
    /// The time since the last call belongs to `phase`.
    fn lap(&mut self, phase: Phase);

    /// Excludes the time since the last call.
    fn skip(&mut self);
}

/// No clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Untimed;

impl Laps for Untimed {
    #[inline(always)]
    fn lap(&mut self, _: Phase) {}

    #[inline(always)]
    fn skip(&mut self) {}
}

/// A running clock and the seconds of every phase.
#[derive(Debug, Clone)]
pub struct Timed {
    last: Instant,
    seconds: [f64; PHASES],
    entered: [bool; PHASES],
}

impl Timed {
    /// Starts the clock.
    #[must_use]
    pub fn start() -> Self {
        Self { last: Instant::now(), seconds: [0.0; PHASES], entered: [false; PHASES] }
    }

    /// Adds the measured times to the current iteration.
    pub fn report(&self, phases: &mut Phases) {
        for (name, phase) in Phase::CHOICES {
            if self.entered[phase as usize] {
                phases.add(name, self.seconds[phase as usize]);
            }
        }
    }
}

impl Laps for Timed {
    #[inline]
    fn lap(&mut self, phase: Phase) {
        let now = Instant::now();
        self.seconds[phase as usize] += (now - self.last).as_secs_f64();
        self.entered[phase as usize] = true;
        self.last = now;
    }

    fn skip(&mut self) {
        self.last = Instant::now();
    }
}

/// Cost of one clock reading: the minimum of many.
#[must_use]
pub fn clock_seconds() -> f64 {
    const READINGS: u32 = 1000;
    const PASSES: usize = 20;
    (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..READINGS {
                std::hint::black_box(Instant::now());
            }
            start.elapsed().as_secs_f64() / f64::from(READINGS)
        })
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_add_up_to_the_whole_and_those_never_entered_are_absent() {
        let whole = Instant::now();
        let mut laps = Timed::start();
        for _ in 0..100 {
            std::hint::black_box(vec![1_u8; 10_000]);
            laps.lap(Phase::Parse);
            laps.lap(Phase::Insert);
        }
        // Excluded time is in no phase.
        std::thread::sleep(std::time::Duration::from_millis(20));
        laps.skip();
        let whole = whole.elapsed().as_secs_f64() - 0.02;
        let mut phases = Phases::new();
        laps.report(&mut phases);
        phases.end_iteration();
        let names: Vec<_> = phases.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["parse", "insert"]);
        let sum: f64 = phases.iter().map(|(_, samples)| samples[0]).sum();
        assert!(sum > 0.0 && sum <= whole, "{sum} of {whole}");
    }

    #[test]
    fn names_and_order_agree_with_the_numbers() {
        for (i, (name, phase)) in Phase::CHOICES.into_iter().enumerate() {
            assert_eq!(phase as usize, i, "{name}");
        }
    }

    #[test]
    fn reading_the_clock_takes_some_time() {
        let seconds = clock_seconds();
        assert!(seconds > 0.0 && seconds < 1e-3, "{seconds}");
    }
}
