//! From bytes back to a value.

use std::fmt;

use super::{MAX_DEPTH, MAX_VARIABLES, Tag};
use crate::token;
use crate::value::{Value, variable_name};

/// Bytes that are no expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Where, in bytes.
    pub at: usize,
    /// Description of the error.
    pub problem: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of the path: {}", self.at, self.problem)
    }
}

impl std::error::Error for Malformed {}

/// The value of one path, in its [canonical](Value::canonical) form: variables are called `$a`, `$b`, ….
///
/// # Errors
///
/// When the bytes are not exactly one expression.
pub fn decode(path: &[u8]) -> Result<Value, Malformed> {
    let mut decoder = Decoder { path, at: 0, variables: 0 };
    let value = decoder.item(MAX_DEPTH)?;
    let at = decoder.at;
    if at == path.len() { Ok(value) } else { Err(Malformed { at, problem: "the expression has ended before" }) }
}

struct Decoder<'a> {
    path: &'a [u8],
    at: usize,
    variables: usize,
}

impl Decoder<'_> {
    fn item(&mut self, depth: usize) -> Result<Value, Malformed> {
        let start = self.at;
        let error = |problem| Malformed { at: start, problem };
        let byte = *self.path.get(start).ok_or(error("the path ends within an expression"))?;
        self.at += 1;
        match Tag::of(byte).ok_or(error("invalid tag"))? {
            Tag::Arity(items) => {
                let depth = depth.checked_sub(1).ok_or(error("too many expressions are within each other"))?;
                let items = (0..items).map(|_| self.item(depth)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::from_items(items))
            }
            Tag::Symbol(length) => {
                let symbol = self.path.get(self.at..self.at + length).ok_or(error("the path ends within a symbol"))?;
                self.at += length;
                let value = Value::read(symbol).ok_or(error("invalid token"))?;
                match &value {
                    Value::Atom(name) if token::variable(name).is_some() => {
                        Err(error("a symbol is written as a variable"))
                    }
                    _ => Ok(value),
                }
            }
            Tag::NewVariable => {
                if self.variables == MAX_VARIABLES {
                    return Err(error("there are too many variables"));
                }
                self.variables += 1;
                Ok(Value::Atom(variable_name(self.variables - 1)))
            }
            Tag::Variable(level) if level < self.variables => Ok(Value::Atom(variable_name(level))),
            Tag::Variable(_) => Err(error("the variable has not occurred yet")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_reads_back() {
        let [f, x, eq] = ["f", "$a", "="].map(Value::atom);
        let rule = Value::expression([eq, Value::expression([f, x.clone()]), x]);
        assert_eq!(decode(b"\x03\xc1=\x02\xc1f\xc0\x80"), Ok(rule));
    }

    #[test]
    fn decode_error_has_position() {
        for (path, at, problem) in [
            (&b""[..], 0, "the path ends within an expression"),
            (b"\x02\xc1a", 3, "the path ends within an expression"),
            (b"\x01\xc2a", 1, "the path ends within a symbol"),
            (b"\x01\x40", 1, "invalid tag"),
            (b"\x02\xc0\x81", 2, "the variable has not occurred yet"),
            (b"\x00\x00", 1, "the expression has ended before"),
            (b"\xc3a b", 0, "invalid token"),
            (b"\xc2$x", 0, "a symbol is written as a variable"),
        ] {
            assert_eq!(decode(path), Err(Malformed { at, problem }), "{path:?}");
        }
        assert!(decode(&[1; MAX_DEPTH + 1]).is_err());
    }
}
