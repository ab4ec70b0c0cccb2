//! Errors for outputs that contain no valid result.

use std::fmt;

/// An error with its position, the value found and the suggested action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or `standard output`; empty if the error is not in the output.
    pub source: String,
    /// Line in the source, from 1.
    pub line: Option<usize>,
    /// The invalid field, e.g. `benchmarks[3].real_time`; empty if the whole source is invalid.
    pub field: String,
    /// The value found and the suggested action.
    pub problem: String,
}

impl Fault {
    pub(crate) fn whole(source: &str, problem: impl Into<String>) -> Self {
        Self { source: source.into(), line: None, field: String::new(), problem: problem.into() }
    }

    pub(crate) fn at_line(source: &str, line: usize, problem: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::whole(source, problem) }
    }

    pub(crate) fn at_field(source: &str, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), ..Self::whole(source, problem) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut place = Vec::new();
        if !self.source.is_empty() {
            place.push(self.source.clone());
        }
        place.extend(self.line.map(|line| format!("line {line}")));
        if !self.field.is_empty() {
            place.push(format!("field {}", self.field));
        }
        match place.as_slice() {
            [] => f.write_str(&self.problem),
            // "standard output is empty" reads better than "standard output: is empty".
            [only] if self.problem.starts_with("is ") => write!(f, "{only} {}", self.problem),
            _ => write!(f, "{}: {}", place.join(", "), self.problem),
        }
    }
}

impl std::error::Error for Fault {}

/// Quotes foreign text, truncated for a message.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Lists the first names and the total count.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names.iter().take(SHOWN).map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", … ({} in all)", names.len()));
    }
    text
}
