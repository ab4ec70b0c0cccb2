//! JSON helpers with errors that name the field.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::{Fault, quoted};
use crate::report::Reading;
use crate::source::Source;

/// Parses one JSON document.
pub(crate) fn parse(source: &Source) -> Result<Value, Fault> {
    serde_json::from_slice(&source.bytes).map_err(|error| {
        let line = source.bytes.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
        let text = error.to_string();
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned();
        let from = error.column().saturating_sub(30).min(line.len());
        let near = String::from_utf8_lossy(&line[from..(error.column() + 30).min(line.len())]).trim().to_owned();
        let hint = if error.is_eof() {
            "; it ends in the middle, so that the output is truncated".to_owned()
        } else if ["NaN", "Infinity", "nan", "inf"].iter().any(|word| near.contains(word)) {
            format!(", near {}; figures must be numbers", quoted(&near))
        } else if near.is_empty() {
            String::new()
        } else {
            format!(", near {}", quoted(&near))
        };
        Fault::at_line(&source.name, error.line(), format!("column {}: not JSON: {text}{hint}", error.column()))
    })
}

/// Describes a value for a message.
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".into(),
    }
}

/// Returns the list in a field of the document.
pub(crate) fn list<'a>(source: &Source, document: &'a Value, field: &str, hint: &str) -> Result<&'a [Value], Fault> {
    match document.get(field) {
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(Fault::at_field(&source.name, field, format!("found {}, not a list; {hint}", found(other)))),
        None => Err(Fault::at_field(&source.name, field, format!("missing; {hint}"))),
    }
}

/// Returns the string in a field of the object at `place`.
pub(crate) fn text<'a>(source: &Source, object: &'a Value, place: &str, field: &str) -> Result<&'a str, Fault> {
    let at = || if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") };
    match object.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(Fault::at_field(&source.name, at(), format!("found {}, not a text", found(other)))),
        None => Err(Fault::at_field(&source.name, at(), "missing, and it should be a text")),
    }
}

/// Returns those of the named fields that are strings.
pub(crate) fn texts(object: &Value, fields: &[&str]) -> BTreeMap<String, String> {
    let text = |field: &&str| Some(((*field).to_owned(), object.get(field)?.as_str()?.to_owned()));
    fields.iter().filter_map(text).collect()
}

/// Returns the value as a number, or an error text.
pub(crate) fn number(value: &Value) -> Result<f64, String> {
    match value.as_f64() {
        Some(number) if number.is_finite() => Ok(number),
        _ => Err(format!("found {}, not a finite number", found(value))),
    }
}

/// Returns the value as a statistic computed by the tool.
pub(crate) fn summary(value: &Value) -> Result<Reading, String> {
    number(value).map(Reading::Summary)
}

/// Returns the list as samples.
pub(crate) fn samples(value: &Value) -> Result<Reading, String> {
    let Value::Array(items) = value else { return Err(format!("found {}, not a list of numbers", found(value))) };
    let each = items.iter().enumerate().map(|(i, item)| number(item).map_err(|problem| format!("[{i}]: {problem}")));
    each.collect::<Result<_, _>>().map(Reading::Samples)
}
