//! Units of measurement, and how one becomes another.

use std::fmt;

/// What a number counts: seconds, bytes, or pieces of something; possibly per second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unit {
    text: String,
    kind: Kind,
    per_second: bool,
    /// The unit in base units is `times / over`. Two numbers, because 1e-9 is not exact and a division by 1e9 rounds once.
    times: f64,
    over: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Time,
    Bytes,
    /// Of what; empty for a plain number.
    Count(String),
}

const TIMES: &[(&str, f64, f64)] = &[
    ("s", 1.0, 1.0),
    ("sec", 1.0, 1.0),
    ("second", 1.0, 1.0),
    ("seconds", 1.0, 1.0),
    ("ms", 1.0, 1e3),
    ("us", 1.0, 1e6),
    // Two characters look like this: the micro sign and the Greek letter.
    ("\u{b5}s", 1.0, 1e6),
    ("\u{3bc}s", 1.0, 1e6),
    ("ns", 1.0, 1e9),
    ("ps", 1.0, 1e12),
    ("min", 60.0, 1.0),
    ("h", 3600.0, 1.0),
];

/// More characters than a unit has that is asked for. Of a longer one there is the beginning only: it may be that of many figures.
const LONGEST: usize = 64;
const KI: f64 = 1024.0;
const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("By", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
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
    /// Reads a unit as a tool or a person writes it. Anything that is no time and no size counts pieces: `queries/s`.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        let text = text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end]);
        // One operation is what every figure is about.
        let stripped = ["/op", "/iter"].iter().find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(text);
        let (of, per_second) = stripped.strip_suffix("/s").map_or((stripped, false), |of| (of, true));
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

    /// Whether it names pieces of something that is not known here.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(&self.kind, Kind::Count(of) if !of.is_empty())
    }

    /// What a number of this unit is in another; nothing if they measure different things. A plain number can be of anything
    /// that is counted.
    pub(crate) fn convert(&self, value: f64, to: &Self) -> Option<f64> {
        let alike = match (&self.kind, &to.kind) {
            (Kind::Count(from), Kind::Count(to)) => from == to || from.is_empty() || to.is_empty(),
            (from, to) => from == to,
        };
        if !alike || self.per_second != to.per_second {
            return None;
        }
        let (times, over) = (self.times * to.over, self.over * to.times);
        // One rounding where one will do.
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
        ] {
            assert_eq!(convert(value, from, to), Some(want), "{value} {from} in {to}");
        }
    }

    #[test]
    fn what_measures_something_else_is_not_converted() {
        for (from, to) in
            [("ns/op", "By"), ("B/op", "s"), ("MB/s", "By"), ("ns", "1/s"), ("allocs/op", "s"), ("rows/s", "queries/s")]
        {
            assert_eq!(convert(1.0, from, to), None, "{from} in {to}");
        }
    }

    #[test]
    fn nanoseconds_survive_to_the_last_digit() {
        // 1234567891 * 1e-9 is another number than 1.234567891.
        assert_eq!(convert(1_234_567_891.0, "ns", "s"), Some(1.234_567_891));
    }
}
