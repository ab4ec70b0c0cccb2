//! Time: seconds from the monotonic clock.

use std::time::Instant;

/// A running monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// The named parts of the measured region, and the seconds each took in every iteration.
///
/// A part may be entered several times in an iteration; its times add up. A part that is never entered is not reported. One that
/// is skipped in some iterations took no time in those, and says so with a zero.
#[derive(Debug, Clone, Default)]
pub struct Phases {
    names: Vec<&'static str>,
    finished: Vec<Vec<f64>>,
    current: Vec<f64>,
    iterations: usize,
}

impl Phases {
    /// No phases yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `work` and adds its time to the phase `name` of the current iteration.
    pub fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let watch = Stopwatch::start();
        let output = work();
        self.add(name, watch.seconds());
        output
    }

    /// Adds `seconds` to the phase `name` of the current iteration.
    pub fn add(&mut self, name: &'static str, seconds: f64) {
        let index = self.names.iter().position(|&known| known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.finished.push(vec![0.0; self.iterations]);
            self.current.push(0.0);
            self.names.len() - 1
        });
        self.current[index] += seconds;
    }

    /// Closes the current iteration.
    pub fn end_iteration(&mut self) {
        for (finished, current) in self.finished.iter_mut().zip(&mut self.current) {
            finished.push(std::mem::take(current));
        }
        self.iterations += 1;
    }

    /// Adds the finished iterations of another clock, e.g. of another thread. A phase that only one of both has took no time in the
    /// other's iterations.
    pub fn extend(&mut self, other: &Self) {
        for name in other.names.iter().filter(|name| !self.names.contains(name)).copied().collect::<Vec<_>>() {
            self.add(name, 0.0);
        }
        for (name, finished) in self.names.iter().zip(&mut self.finished) {
            match other.names.iter().position(|others| others == name) {
                Some(index) => finished.extend(&other.finished[index]),
                None => finished.resize(finished.len() + other.iterations, 0.0),
            }
        }
        self.iterations += other.iterations;
    }

    /// Forgets everything, e.g. after the warm-up.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Every phase in the order in which they were first entered, with the seconds of every finished iteration.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
        self.names.iter().copied().zip(self.finished.iter().map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::Phases;

    #[test]
    fn times_add_up_within_an_iteration_and_a_skipped_phase_took_no_time() {
        let mut phases = Phases::new();
        phases.add("scan", 1.0);
        phases.add("scan", 2.0);
        phases.end_iteration();
        phases.add("scan", 4.0);
        phases.add("delta", 8.0);
        phases.end_iteration();
        let all: Vec<_> = phases.iter().collect();
        assert_eq!(all, [("scan", &[3.0, 4.0][..]), ("delta", &[0.0, 8.0][..])]);
    }

    #[test]
    fn iterations_of_another_clock_follow_ones_own() {
        let mut one = Phases::new();
        one.add("scan", 1.0);
        one.end_iteration();
        let mut other = Phases::new();
        other.add("wait", 2.0);
        other.end_iteration();
        other.add("scan", 4.0);
        other.end_iteration();
        let mut all = Phases::new();
        all.extend(&one);
        all.extend(&other);
        let found: Vec<_> = all.iter().collect();
        assert_eq!(found, [("scan", &[1.0, 0.0, 4.0][..]), ("wait", &[0.0, 2.0, 0.0][..])]);
    }

    #[test]
    fn a_cleared_clock_has_no_phases() {
        let mut phases = Phases::new();
        phases.time("warmup", || ());
        phases.clear();
        assert_eq!(phases.iter().count(), 0);
    }
}
