//! Strict parsing with errors that name position and field.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::check::{Check, Violation};

/// The reason why a text is not a valid record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// The invalid field, e.g. `metrics.latency.samples[2]`; empty if the text is not JSON or the whole record is
    /// invalid.
    pub field: String,
    /// Line in the text, from 1; absent if the text is well-formed JSON but violates a rule.
    pub line: Option<usize>,
    /// Column in the line, from 1; 0 if the text ends directly after a line break.
    pub column: Option<usize>,
    /// Whether the text is truncated inside the record.
    pub incomplete: bool,
    /// Description of the error.
    pub problem: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "field {}: ", self.field)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ReadError {}

impl From<Violation> for ReadError {
    fn from(violation: Violation) -> Self {
        Self { field: violation.field, line: None, column: None, incomplete: false, problem: violation.problem }
    }
}

/// Parses exactly one record from `text` and validates it against every rule of its schema.
pub fn read<T: DeserializeOwned + Check>(text: &[u8]) -> Result<T, ReadError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let record: T = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = error.path().to_string();
        json_error(if field == "." { String::new() } else { field }, error.inner())
    })?;
    deserializer.end().map_err(|error| json_error(String::new(), &error))?;
    record.check()?;
    Ok(record)
}

fn json_error(field: String, error: &serde_json::Error) -> ReadError {
    let text = error.to_string();
    // serde_json appends the position, which is reported separately.
    let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned();
    ReadError { field, line: Some(error.line()), column: Some(error.column()), incomplete: error.is_eof(), problem }
}

/// Deserializes a field that may be absent but must not be null.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Makes structs the records of a schema: an `Option` is a field that may be absent, and no field is unknown. They are read from JSON
/// objects only: serde's own implementation, derived for `remote = "Self"`, also takes an array with the fields in order, which no schema
/// allows.
macro_rules! records {
    ($($(#[$about:meta])* $vis:vis struct $name:ident { $($fields:tt)* })+) => {$(
        crate::read::records!(@fields $name [$(#[$about])* $vis struct] {} $($fields)*);
    )+};
    // Fields move one by one into the braces.
    (@fields $name:ident $head:tt { $($done:tt)* } $(#[$doc:meta])* $vis:vis $field:ident: Option<$type:ty>, $($rest:tt)*) => {
        crate::read::records!(@fields $name $head {
            $($done)*
            $(#[$doc])*
            #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
            $vis $field: Option<$type>,
        } $($rest)*);
    };
    (@fields $name:ident $head:tt { $($done:tt)* } $(#[$doc:meta])* $vis:vis $field:ident: $type:ty, $($rest:tt)*) => {
        crate::read::records!(@fields $name $head { $($done)* $(#[$doc])* $vis $field: $type, } $($rest)*);
    };
    (@fields $name:ident [$($head:tt)*] $fields:tt) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
        $($head)* $name $fields

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                struct Object;
                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> std::result::Result<$name, A::Error> {
                        $name::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }
                deserializer.deserialize_map(Object)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }
    };
}
pub(crate) use records;
