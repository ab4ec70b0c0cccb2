//! Timing with the monotonic clock, in seconds.

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

/// Named phases of the measured region with their seconds per iteration.
///
/// Times of a phase that is entered several times in an iteration are added. A phase that is never entered is not
/// reported. A phase that is skipped in an iteration has zero seconds in it.
#[derive(Debug, Clone, Default)]
pub struct Phases {
    names: Vec<&'static str>,
    finished: Vec<Vec<f64>>,
    current: Vec<f64>,
    iterations: usize,
}

impl Phases {
    /// Creates an instance without phases.
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

    /// Appends the finished iterations of another instance, e.g. of another thread. A phase that only one of them has
    /// gets zero seconds in the other's iterations.
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

    /// Clears all phases, e.g. after the warm-up.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns every phase in the order of first entry, with its seconds per finished iteration.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
        self.names.iter().copied().zip(self.finished.iter().map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::Phases;

    #[test]
    fn phase_times_are_added_and_skipped_phases_are_zero() {
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
    fn extend_appends_iterations() {
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
    fn clear_removes_phases() {
        let mut phases = Phases::new();
        phases.time("warmup", || ());
        phases.clear();
        assert_eq!(phases.iter().count(), 0);
    }
}
