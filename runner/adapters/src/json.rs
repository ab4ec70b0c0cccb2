//! JSON helpers with errors that name the field.
//!
//! Tools write documents that are not quite JSON: a bare `NaN`, a key twice, or a second document behind the first. The
//! first two are errors only if a metric asks for that figure, the third always.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::fault::{Fault, quoted};
use crate::report::{Field, Reading};
use crate::source::Source;

/// Byte order mark, which tools for .NET write.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// The only key of the object that replaces the values of a key that occurs twice.
const TWICE: &str = "\u{0}twice";

/// Parses the only JSON document of an output. `several` is the advice if there are more.
pub(crate) fn parse(source: &Source, several: &str) -> Result<Value, Fault> {
    let bytes = quote_words(source.bytes.strip_prefix(MARK).unwrap_or(&source.bytes));
    let mut documents = serde_json::Deserializer::from_slice(&bytes).into_iter::<Checked>();
    let document = match documents.next() {
        Some(document) => document.map_err(|error| not_json(&source.name, &bytes, &error))?,
        None => return Err(Fault::whole(&source.name, "is empty")),
    };
    let after = bytes.len() - bytes[documents.byte_offset()..].trim_ascii_start().len();
    let rest = &bytes[after..];
    if rest.is_empty() {
        return Ok(document.0);
    }
    let line = 1 + bytes[..after].iter().filter(|&&byte| byte == b'\n').count();
    let problem = if matches!(rest[0], b'{' | b'[') {
        format!("a second document begins here; {several}")
    } else {
        let text = String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or_default());
        format!("{} follows the document; write only the document to this output", quoted(text.trim()))
    };
    Err(Fault::at_line(&source.name, line, problem))
}

fn not_json(name: &str, bytes: &[u8], error: &serde_json::Error) -> Fault {
    let line = bytes.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned();
    let from = error.column().saturating_sub(30).min(line.len());
    let near = String::from_utf8_lossy(&line[from..(error.column() + 30).min(line.len())]).trim().to_owned();
    let hint = if error.is_eof() {
        "; it ends in the middle, so that the output is truncated".to_owned()
    } else if near.is_empty() {
        String::new()
    } else {
        format!(", near {}", quoted(&near))
    };
    Fault::at_line(name, error.line(), format!("column {}: not JSON: {text}{hint}", error.column()))
}

/// Puts quotes around bare words that stand for a number that is not finite, such as `NaN`, `-inf` and `Infinity`.
fn quote_words(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Option<Vec<u8>> = None;
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'"' {
            at = after_text(bytes, at);
            continue;
        }
        let begin = at;
        at += usize::from(matches!(byte, b'+' | b'-'));
        while bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            at += 1;
        }
        let word = &bytes[begin..at];
        if word.len() >= 3 && is_not_finite(word) {
            let out = out.get_or_insert_with(|| Vec::with_capacity(bytes.len() + 64));
            out.extend_from_slice(&bytes[copied..begin]);
            out.push(b'"');
            out.extend_from_slice(word);
            out.push(b'"');
            copied = at;
        }
        at = at.max(begin + 1);
    }
    match out {
        None => Cow::Borrowed(bytes),
        Some(mut out) => {
            out.extend_from_slice(&bytes[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Returns the position after the text that begins with a quote at `at`.
fn after_text(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

fn is_not_finite(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok_and(|number| !number.is_finite()))
}

/// A value in which a key that occurs twice has no value.
struct Checked(Value);

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Builder).map(Self)
    }
}

struct Builder;

impl<'de> Visitor<'de> for Builder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(Checked(item)) = items.next_element()? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some((key, Checked(value))) = entries.next_entry::<String, Checked>()? {
            match out.entry(key) {
                serde_json::map::Entry::Vacant(new) => {
                    new.insert(value);
                }
                serde_json::map::Entry::Occupied(mut known) => {
                    *known.get_mut() = Value::Object(Map::from_iter([(TWICE.to_owned(), Value::Null)]));
                }
            }
        }
        Ok(Value::Object(out))
    }
}

/// Whether the value replaces several values of one key.
fn is_twice(value: &Value) -> bool {
    value.as_object().is_some_and(|entries| entries.contains_key(TWICE))
}

/// Whether a tool meant the value as a figure: a number, a word for one that is not finite, or several of one name.
pub(crate) fn is_figure(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => is_not_finite(text.as_bytes()),
        value => is_twice(value),
    }
}

/// Describes a value for a message.
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(items) => format!("a list of {}", items.len()),
        value if is_twice(value) => "the key twice, so that two figures have one name".into(),
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

/// Appends a field for every figure in an object and the objects in it. Names are joined with dots. `skips` names
/// objects without figures, and `make` makes a field of a name and a value.
pub(crate) fn flatten(
    path: &str,
    figures: &Map<String, Value>,
    skips: &dyn Fn(&str) -> bool,
    make: &dyn Fn(&str, &Value) -> Field,
    fields: &mut Vec<Field>,
) {
    for (name, value) in figures {
        let path = if path.is_empty() { name.clone() } else { crate::report::joined(".", [path, name.as_str()]) };
        match value {
            Value::Object(_) if skips(&path) => {}
            Value::Object(below) if !is_twice(value) => flatten(&path, below, skips, make, fields),
            value if is_figure(value) => fields.push(make(&path, value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Value, String> {
        let source = Source { name: "standard output".into(), bytes: text.into() };
        parse(&source, crate::report::ONE_REPORT).map_err(|fault| fault.to_string())
    }

    #[test]
    fn words_for_numbers_that_are_not_finite_are_texts() {
        for word in ["NaN", "nan", "-nan", "inf", "-inf", "Infinity", "-Infinity", "+INF"] {
            let document = parsed(&format!(r#"{{"a": {word}, "b\"NaN": "x NaN", "c": [{word}]}}"#)).expect("read");
            assert_eq!(document["a"], word);
            assert_eq!(document["b\"NaN"], "x NaN");
            assert!(is_figure(&document["a"]) && is_figure(&document["c"][0]), "{word}");
        }
        assert!(parsed(r#"{"a": nano}"#).is_err());
        assert_eq!(parsed("\u{feff}[true, null, -1]").expect("read"), serde_json::json!([true, null, -1]));
    }

    #[test]
    fn a_key_that_occurs_twice_has_no_value() {
        let document = parsed(r#"{"a": 1, "b": 2, "a": 1}"#).expect("read");
        assert!(number(&document["a"]).expect_err("no number").contains("twice"));
        assert_eq!(document["b"], 2);
    }

    #[test]
    fn a_document_behind_the_first_is_an_error() {
        assert!(
            parsed("{}\n\n{}").expect_err("two").contains("line 3: a second document begins here; run the tool once")
        );
        assert!(parsed("[]\nok: 1").expect_err("text").contains("line 2: \"ok: 1\" follows the document"));
    }
}
