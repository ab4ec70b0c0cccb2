//! The schema's rules that a Rust type cannot express: lengths, ranges and patterns.

use std::collections::BTreeMap;

/// A value that violates a rule of its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the invalid field, e.g. `blocks[3].id`.
    pub field: String,
    /// Description of the violation.
    pub problem: String,
}

impl Violation {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// Prefixes the violation's field with `field`, the path of the checked record in its parent.
    pub(crate) fn within(self, field: &str) -> Self {
        let separator = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{field}{separator}{}", self.field), problem: self.problem }
    }
}

/// A record whose schema rules can be validated after parsing.
pub trait Check {
    /// Returns the first violation.
    fn check(&self) -> Result<(), Violation>;
}

pub(crate) type Checked = Result<(), Violation>;

/// Validates an optional record in a field.
pub(crate) fn record<'a, T: Check + 'a>(field: &str, record: impl Into<Option<&'a T>>) -> Checked {
    record.into().map_or(Ok(()), |record| record.check().map_err(|violation| violation.within(field)))
}

/// Requires `at_least..=at_most` records and validates each.
pub(crate) fn list<T: Check>(field: &str, records: &[T], at_least: usize, at_most: usize) -> Checked {
    count(field, records.len(), at_least, at_most)?;
    records.iter().enumerate().try_for_each(|(i, item)| record(&format!("{field}[{i}]"), item))
}

/// Requires `at_least..=at_most` characters, counted as in JSON Schema (code points).
pub(crate) fn length(field: &str, value: &str, at_least: usize, at_most: usize) -> Checked {
    // A string has at most as many characters as bytes, so that most strings need no counting.
    let fits = value.len() >= at_least && (value.len() <= at_most || value.chars().count() <= at_most);
    require(fits, field, || format!("{} characters, but {at_least} to {at_most} are allowed", value.chars().count()))
}

/// Requires `at_least..=at_most` entries.
pub(crate) fn count(field: &str, found: usize, at_least: usize, at_most: usize) -> Checked {
    require((at_least..=at_most).contains(&found), field, || {
        format!("{found} entries, but {at_least} to {at_most} are allowed")
    })
}

/// Requires at most 2^53 - 1, the largest integer that every JSON reader represents exactly.
pub(crate) fn exact(field: &str, value: u64) -> Checked {
    require(value < 1 << 53, field, || format!("{value} exceeds the maximum of 9007199254740991"))
}

/// Requires a non-negative value.
pub(crate) fn not_negative(field: &str, value: f64) -> Checked {
    require(value >= 0.0, field, || format!("{value} is negative"))
}

/// Requires a value in `at_least..=at_most`.
pub(crate) fn within(field: &str, value: f64, at_least: f64, at_most: f64) -> Checked {
    require((at_least..=at_most).contains(&value), field, || {
        format!("{value:e}, but {at_least} to {at_most} are allowed")
    })
}

/// Requires a positive value.
pub(crate) fn positive(field: &str, value: f64) -> Checked {
    require(value > 0.0, field, || format!("{value} is not greater than zero"))
}

/// Requires a match of `^[a-z][A-Za-z0-9]{0,62}$`.
pub(crate) fn name(field: &str, value: &str) -> Checked {
    let bytes = value.as_bytes();
    let fits = bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(u8::is_ascii_alphanumeric);
    require(fits, field, || format!("{value:?} is not a name: a lower-case letter, then at most 62 letters and digits"))
}

/// Requires a match of `^sha256:[0-9a-f]{64}$`, with `algorithm` in place of sha256.
pub(crate) fn digest_by(algorithm: &str, field: &str, value: &str) -> Checked {
    let digits = value.strip_prefix(algorithm).and_then(|rest| rest.strip_prefix(':'));
    let fits = digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(lower_hex));
    require(fits, field, || format!("{value:?} is not {algorithm}: and 64 lower-case hexadecimal digits"))
}

/// Requires a match of `^[0-9a-f]{32,128}$`.
pub(crate) fn digest(field: &str, value: &str) -> Checked {
    let fits = (32..=128).contains(&value.len()) && value.bytes().all(lower_hex);
    require(fits, field, || format!("{value:?} is not 32 to 128 lower-case hexadecimal digits"))
}

/// Requires at most 256 entries, as the schema's `parameters` does.
pub(crate) fn parameters(field: &str, value: &BTreeMap<String, String>) -> Checked {
    count(field, value.len(), 0, 256)
}

pub(crate) fn require(fits: bool, field: &str, problem: impl FnOnce() -> String) -> Checked {
    if fits { Ok(()) } else { Err(Violation::new(field, problem())) }
}

fn lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}
