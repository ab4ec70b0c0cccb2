//! The schema's rules that a Rust type cannot express: lengths, ranges and patterns.

use std::collections::BTreeMap;

/// A value that breaks a rule of its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field at fault, e.g. `blocks[3].id`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Violation {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The same violation, seen from the record that holds the checked one in `field`.
    pub(crate) fn within(self, field: &str) -> Self {
        let separator = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{field}{separator}{}", self.field), problem: self.problem }
    }
}

/// A record that can be checked against its schema's rules once it has been read.
pub trait Check {
    /// Reports the first broken rule.
    fn check(&self) -> Result<(), Violation>;
}

pub(crate) type Checked = Result<(), Violation>;

/// A record in a field, if it is there.
pub(crate) fn record<'a, T: Check + 'a>(field: &str, record: impl Into<Option<&'a T>>) -> Checked {
    record.into().map_or(Ok(()), |record| record.check().map_err(|violation| violation.within(field)))
}

/// `at_least..=at_most` records.
pub(crate) fn list<T: Check>(field: &str, records: &[T], at_least: usize, at_most: usize) -> Checked {
    count(field, records.len(), at_least, at_most)?;
    records.iter().enumerate().try_for_each(|(i, item)| record(&format!("{field}[{i}]"), item))
}

/// `at_least..=at_most` characters, as JSON Schema counts them.
pub(crate) fn length(field: &str, value: &str, at_least: usize, at_most: usize) -> Checked {
    // No character is longer than its bytes, so most strings need no counting.
    let fits = value.len() >= at_least && (value.len() <= at_most || value.chars().count() <= at_most);
    require(fits, field, || format!("{} characters, but {at_least} to {at_most} are allowed", value.chars().count()))
}

/// `at_least..=at_most` entries.
pub(crate) fn count(field: &str, found: usize, at_least: usize, at_most: usize) -> Checked {
    require((at_least..=at_most).contains(&found), field, || {
        format!("{found} entries, but {at_least} to {at_most} are allowed")
    })
}

/// Up to 2^53 - 1, which every reader of JSON holds exactly.
pub(crate) fn exact(field: &str, value: u64) -> Checked {
    require(value < 1 << 53, field, || format!("{value} is more than 9007199254740991, the largest that is allowed"))
}

/// Zero or more.
pub(crate) fn not_negative(field: &str, value: f64) -> Checked {
    require(value >= 0.0, field, || format!("{value} is negative"))
}

/// `at_least..=at_most`.
pub(crate) fn within(field: &str, value: f64, at_least: f64, at_most: f64) -> Checked {
    require((at_least..=at_most).contains(&value), field, || {
        format!("{value:e}, but {at_least} to {at_most} are allowed")
    })
}

/// More than zero.
pub(crate) fn positive(field: &str, value: f64) -> Checked {
    require(value > 0.0, field, || format!("{value} is not greater than zero"))
}

/// `^[a-z][A-Za-z0-9]{0,62}$`
pub(crate) fn name(field: &str, value: &str) -> Checked {
    let bytes = value.as_bytes();
    let fits = bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(u8::is_ascii_alphanumeric);
    require(fits, field, || format!("{value:?} is not a name: a lower-case letter, then at most 62 letters and digits"))
}

/// `^sha256:[0-9a-f]{64}$`, or the same of another algorithm.
pub(crate) fn digest_by(algorithm: &str, field: &str, value: &str) -> Checked {
    let digits = value.strip_prefix(algorithm).and_then(|rest| rest.strip_prefix(':'));
    let fits = digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(lower_hex));
    require(fits, field, || format!("{value:?} is not {algorithm}: and 64 lower-case hexadecimal digits"))
}

/// `^[0-9a-f]{32,128}$`
pub(crate) fn digest(field: &str, value: &str) -> Checked {
    let fits = (32..=128).contains(&value.len()) && value.bytes().all(lower_hex);
    require(fits, field, || format!("{value:?} is not 32 to 128 lower-case hexadecimal digits"))
}

/// At most 256 entries, as in the schema's `parameters`.
pub(crate) fn parameters(field: &str, value: &BTreeMap<String, String>) -> Checked {
    count(field, value.len(), 0, 256)
}

pub(crate) fn require(fits: bool, field: &str, problem: impl FnOnce() -> String) -> Checked {
    if fits { Ok(()) } else { Err(Violation::new(field, problem())) }
}

fn lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}
