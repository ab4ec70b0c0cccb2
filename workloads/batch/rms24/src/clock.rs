//! The machine's monotonic clock, which client and server share where they run on one machine.

/// Nanoseconds since some time in the past, the same for all processes of the machine.
#[must_use]
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` may be written to.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    assert_eq!(failed, 0, "every Linux has a monotonic clock");
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// From when to when something happened, in [`nanoseconds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub began: u64,
    /// When it had ended.
    pub ended: u64,
}

impl Span {
    /// From then until now.
    #[must_use]
    pub fn since(began: u64) -> Self {
        Self { began, ended: nanoseconds() }
    }

    /// Whether `other` lies within this one.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.began <= other.began && other.began <= other.ended && other.ended <= self.ended
    }

    /// Seconds that belong to both.
    #[must_use]
    pub fn overlap_seconds(&self, other: &Self) -> f64 {
        let (began, ended) = (self.began.max(other.began), self.ended.min(other.ended));
        ended.saturating_sub(began) as f64 * 1e-9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spans_share_what_lies_in_both() {
        let span = |began, ended| Span { began, ended };
        for (a, b, nanoseconds) in [
            (span(0, 10), span(2, 5), 3.0),
            (span(0, 10), span(5, 20), 5.0),
            (span(5, 20), span(0, 10), 5.0),
            (span(0, 10), span(10, 20), 0.0),
            (span(0, 10), span(30, 40), 0.0),
        ] {
            assert!((a.overlap_seconds(&b) - nanoseconds * 1e-9).abs() < 1e-15, "{a:?} and {b:?}");
        }
        assert!(span(0, 10).contains(&span(0, 10)) && !span(1, 10).contains(&span(0, 10)));
        // Another machine's clock has an arbitrary offset.
        assert!(!span(0, 10).contains(&span(7, 3)));
    }

    #[test]
    fn the_clock_goes_forwards() {
        let began = nanoseconds();
        let span = Span::since(began);
        assert!(span.ended >= span.began && began > 0);
    }
}
