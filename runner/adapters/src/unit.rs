//! Units and their conversion.

use std::fmt;

/// A unit: seconds, bytes or a count, optionally per second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unit {
    text: String,
    kind: Kind,
    per_second: bool,
    /// The factor to base units is `times / over`. Two numbers, because 1e-9 is not exact and a division by 1e9 rounds
    /// once.
    times: f64,
    over: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Time,
    Bytes,
    /// The counted item; empty for a plain number.
    Count(String),
}

const TIMES: &[(&str, f64, f64)] = &[
    ("s", 1.0, 1.0),
    ("sec", 1.0, 1.0),
    ("second", 1.0, 1.0),
    ("seconds", 1.0, 1.0),
    ("ms", 1.0, 1e3),
    ("us", 1.0, 1e6),
    // Micro has two code points: the micro sign and the Greek letter.
    ("\u{b5}s", 1.0, 1e6),
    ("\u{3bc}s", 1.0, 1e6),
    ("ns", 1.0, 1e9),
    ("ps", 1.0, 1e12),
    ("min", 60.0, 1.0),
    ("h", 3600.0, 1.0),
];

/// Limit on the length of a unit, above that of any requested one. Longer ones are truncated to bound memory, because a
/// unit may repeat for many figures.
const LONGEST: usize = 64;
const KI: f64 = 1024.0;
const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("By", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
    ("bit", 1.0 / 8.0),
    ("kbit", 1e3 / 8.0),
    ("Mbit", 1e6 / 8.0),
    ("Gbit", 1e9 / 8.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("kBy", 1e3),
    ("MB", 1e6),
    ("MBy", 1e6),
    ("GB", 1e9),
    ("GBy", 1e9),
    ("TB", 1e12),
    ("KiB", KI),
    ("KiBy", KI),
    ("MiB", KI * KI),
    ("MiBy", KI * KI),
    ("GiB", KI * KI * KI),
    ("GiBy", KI * KI * KI),
];

impl Unit {
    /// Parses a unit as written by a tool or a user. Everything except times and sizes is a count: `queries/s`.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        let text = text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end]);
        // Figures are always per operation.
        let stripped = ["/op", "/iter"].iter().find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(text);
        let rate = ["/s", "/sec"].iter().find_map(|suffix| stripped.strip_suffix(suffix));
        let (of, per_second) = rate.map_or((stripped, false), |of| (of, true));
        let unit = |kind, times, over| Self { text: text.into(), kind, per_second, times, over };
        if let Some((_, times, over)) = TIMES.iter().find(|(name, ..)| *name == of) {
            return unit(Kind::Time, *times, *over);
        }
        if let Some((_, times)) = BYTES.iter().find(|(name, _)| *name == of) {
            return unit(Kind::Bytes, *times, 1.0);
        }
        match of {
            "" | "1" => unit(Kind::Count(String::new()), 1.0, 1.0),
            "%" => unit(Kind::Count(String::new()), 1.0, 100.0),
            other => unit(Kind::Count(other.into()), 1.0, 1.0),
        }
    }

    /// Whether figures of this dimension are written with several factors, such as ms and s.
    pub(crate) fn has_scale(&self) -> bool {
        !matches!(self.kind, Kind::Count(_)) || self.times != self.over
    }

    /// Whether it counts items of a kind that is not known here.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(&self.kind, Kind::Count(of) if !of.is_empty())
    }

    /// Converts a value to another unit; None if the dimensions differ. A plain number converts to any count.
    pub(crate) fn convert(&self, value: f64, to: &Self) -> Option<f64> {
        let alike = match (&self.kind, &to.kind) {
            (Kind::Count(from), Kind::Count(to)) => from == to || from.is_empty() || to.is_empty(),
            (from, to) => from == to,
        };
        if !alike || self.per_second != to.per_second {
            return None;
        }
        let (times, over) = (self.times * to.over, self.over * to.times);
        // Avoid a second rounding.
        Some(if times == over {
            value
        } else if over == 1.0 {
            value * times
        } else if times == 1.0 {
            value / over
        } else {
            value * times / over
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.text.is_empty() { "1" } else { &self.text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(value: f64, from: &str, to: &str) -> Option<f64> {
        Unit::parse(from).convert(value, &Unit::parse(to))
    }

    #[test]
    fn tools_units_become_base_units() {
        for (value, from, to, want) in [
            (123.0, "ns/op", "s", 123e-9),
            (3.0, "ns/iter", "s", 3e-9),
            (0.1, "ms", "s", 1e-4),
            (7.0, "us", "s", 7e-6),
            (7.0, "\u{b5}s", "s", 7e-6),
            (7.0, "\u{3bc}s", "s", 7e-6),
            (2.0, "min", "s", 120.0),
            (1.5, "s", "ms", 1500.0),
            (12.0, "B/op", "By", 12.0),
            (80.5, "MB/s", "By/s", 80.5e6),
            (1.0, "MiB/s", "By/s", 1_048_576.0),
            (3.0, "allocs/op", "1", 3.0),
            (3.0, "allocs/op", "allocs", 3.0),
            (50.0, "1/s", "queries/s", 50.0),
            (5.0, "", "1", 5.0),
            (50.0, "%", "1", 0.5),
            (8e6, "bit/s", "By/s", 1e6),
            (3.0, "requests/sec", "requests/s", 3.0),
        ] {
            assert_eq!(convert(value, from, to), Some(want), "{value} {from} in {to}");
        }
    }

    #[test]
    fn units_of_different_dimensions_are_not_converted() {
        for (from, to) in
            [("ns/op", "By"), ("B/op", "s"), ("MB/s", "By"), ("ns", "1/s"), ("allocs/op", "s"), ("rows/s", "queries/s")]
        {
            assert_eq!(convert(1.0, from, to), None, "{from} in {to}");
        }
    }

    #[test]
    fn nanoseconds_are_converted_exactly() {
        // 1234567891 * 1e-9 is not equal to 1.234567891.
        assert_eq!(convert(1_234_567_891.0, "ns", "s"), Some(1.234_567_891));
    }
}
