//! `MeTTa` values, the elements of facts and rules.

use std::fmt::Write;
use std::hash::{Hash, Hasher};

use crate::token;

/// A value of the language.
///
/// Equality and hashes take floating-point numbers by their bits, so that a value can be a key.
#[derive(Debug, Clone)]
pub enum Value {
    /// A name. One that begins with `$`, `&` or `'` is a variable; `_` is a variable that occurs nowhere else.
    Atom(String),
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Long(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    String(String),
    /// A resource's name.
    Uri(String),
    /// Values in parentheses.
    SExpr(Vec<Value>),
    /// Nothing: `()`.
    Nil,
    /// An error with its message and value.
    Error(String, Box<Value>),
    /// A type, as a value.
    Type(Box<Value>),
}

/// The head under which [`Value::Error`] is written: `(error "message" value)`.
pub const ERROR: &str = "error";
/// The head under which [`Value::Type`] is written: `(type value)`.
pub const TYPE: &str = "type";

impl Value {
    /// An atom.
    #[must_use]
    pub fn atom(name: impl Into<String>) -> Self {
        Self::Atom(name.into())
    }

    /// An expression.
    #[must_use]
    pub fn expression(items: impl Into<Vec<Self>>) -> Self {
        Self::SExpr(items.into())
    }

    /// Returns the value without variable names, as a decoder returns it.
    ///
    /// Variables are renamed to `$a`, `$b`, … in order of first occurrence, an empty expression becomes `Nil`, and an
    /// expression or an atom that parses as another kind of value becomes that value.
    #[must_use]
    pub fn canonical(&self) -> Self {
        self.canonical_in(&mut Names::default())
    }

    fn canonical_in<'a>(&'a self, names: &mut Names<'a>) -> Self {
        match self {
            Self::Atom(name) => match token::variable(name) {
                Some(name) => Self::Atom(variable_name(names.level(name).0)),
                None => Self::read(name.as_bytes()).unwrap_or_else(|| self.clone()),
            },
            Self::SExpr(items) => {
                let items: Vec<Self> = items.iter().map(|item| item.canonical_in(names)).collect();
                Self::from_items(items)
            }
            Self::Error(message, value) => Self::Error(message.clone(), Box::new(value.canonical_in(names))),
            Self::Type(value) => Self::Type(Box::new(value.canonical_in(names))),
            Self::Bool(_) | Self::Long(_) | Self::Float(_) | Self::String(_) | Self::Uri(_) | Self::Nil => self.clone(),
        }
    }

    /// Parses a token; a variable parses as an atom. `None` for an invalid token.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [] => return None,
            b"true" => return Some(Self::Bool(true)),
            b"false" => return Some(Self::Bool(false)),
            [token::TEXT_QUOTE, ..] => return token::read_quoted(bytes, token::TEXT_QUOTE).map(Self::String),
            [token::URI_QUOTE, ..] => return token::read_quoted(bytes, token::URI_QUOTE).map(Self::Uri),
            _ => {}
        }
        let text = std::str::from_utf8(bytes).ok().filter(|text| token::is_atom(text))?;
        // Only canonical forms; "+1", "1_0" and "1." are names.
        if let Some(number) = text.parse::<i64>().ok().filter(|number| itoa::Buffer::new().format(*number) == text) {
            return Some(Self::Long(number));
        }
        if let Some(number) = text.parse::<f64>().ok().filter(|number| token::float(*number) == text) {
            return Some(Self::Float(number));
        }
        Some(Self::Atom(text.to_owned()))
    }

    /// Returns the value that an expression of these items parses as.
    #[must_use]
    pub fn from_items(mut items: Vec<Self>) -> Self {
        match items.as_mut_slice() {
            [] => Self::Nil,
            [Self::Atom(head), Self::String(message), value] if head == ERROR => {
                Self::Error(std::mem::take(message), Box::new(std::mem::replace(value, Self::Nil)))
            }
            [Self::Atom(head), value] if head == TYPE => Self::Type(Box::new(std::mem::replace(value, Self::Nil))),
            _ => Self::SExpr(items),
        }
    }

    /// Key of rules: the first atom of the value's expression, or the atom itself, and the number of items that follow.
    /// `None` if it begins with a variable or another expression.
    #[must_use]
    pub fn head(&self) -> Option<(&str, usize)> {
        let (first, arity) = match self {
            Self::SExpr(items) => (items.first()?, items.len() - 1),
            other => (other, 0),
        };
        match first {
            Self::Atom(name) if token::variable(name).is_none() => Some((name, arity)),
            _ => None,
        }
    }

    /// Approximate heap memory in bytes, from which a trial's memory is computed.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        /// Allocator overhead per allocation.
        const OVERHEAD: usize = 16;
        match self {
            Self::Atom(text) | Self::String(text) | Self::Uri(text) => text.capacity() + OVERHEAD,
            Self::SExpr(items) => {
                let own = items.capacity() * size_of::<Self>() + OVERHEAD;
                own + items.iter().map(Self::heap_bytes).sum::<usize>()
            }
            Self::Error(message, value) => message.capacity() + 2 * OVERHEAD + size_of::<Self>() + value.heap_bytes(),
            Self::Type(value) => OVERHEAD + size_of::<Self>() + value.heap_bytes(),
            Self::Bool(_) | Self::Long(_) | Self::Float(_) | Self::Nil => 0,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Atom(a), Self::Atom(b)) | (Self::String(a), Self::String(b)) | (Self::Uri(a), Self::Uri(b)) => {
                a == b
            }
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::SExpr(a), Self::SExpr(b)) => a == b,
            (Self::Nil, Self::Nil) => true,
            (Self::Error(m, a), Self::Error(n, b)) => m == n && a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Atom(text) | Self::String(text) | Self::Uri(text) => text.hash(state),
            Self::Bool(truth) => truth.hash(state),
            Self::Long(number) => number.hash(state),
            Self::Float(number) => number.to_bits().hash(state),
            Self::SExpr(items) => items.hash(state),
            Self::Nil => {}
            Self::Error(message, value) => (message, value).hash(state),
            Self::Type(value) => value.hash(state),
        }
    }
}

/// The variables of one top-level expression, in the order in which they first occur (their De Bruijn levels).
///
/// There are few; a linear search beats hashing.
#[derive(Debug, Default)]
pub(crate) struct Names<'a>(Vec<&'a str>);

impl<'a> Names<'a> {
    /// The level of a variable, and whether it is new. One without a name is always new.
    pub(crate) fn level(&mut self, name: &'a str) -> (usize, bool) {
        let known = if name.is_empty() { None } else { self.0.iter().position(|&known| known == name) };
        known.map_or_else(
            || {
                self.0.push(name);
                (self.0.len() - 1, true)
            },
            |level| (level, false),
        )
    }

    /// Forgets all, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Default name of the variable of a level: `$a` … `$z`, `$a1` ….
pub(crate) fn variable_name(level: usize) -> String {
    let letter = char::from(b'a' + (level % 26) as u8);
    let mut name = format!("${letter}");
    if level >= 26 {
        write!(name, "{}", level / 26).expect("a string takes everything");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_renamed_in_the_order_of_their_first_occurrence() {
        let [x, y, wild] = ["$x", "&y", "_"].map(Value::atom);
        let value = Value::expression([y.clone(), x.clone(), wild.clone(), Value::expression([x, y, wild])]);
        let [a, b, c, d] = ["$a", "$b", "$c", "$d"].map(Value::atom);
        let renamed = Value::expression([a.clone(), b.clone(), c, Value::expression([b, a, d])]);
        assert_eq!(value.canonical(), renamed);
        assert_eq!(renamed.canonical(), renamed);
    }

    #[test]
    fn ambiguous_atom_has_its_canonical_kind() {
        for (value, reads_as) in [
            (Value::expression([]), Value::Nil),
            (Value::atom("true"), Value::Bool(true)),
            (Value::atom("12"), Value::Long(12)),
            (
                Value::expression([Value::atom("error"), Value::String("e".into()), Value::Nil]),
                Value::Error("e".into(), Box::new(Value::Nil)),
            ),
            (Value::expression([Value::atom("type"), Value::Long(1)]), Value::Type(Box::new(Value::Long(1)))),
        ] {
            assert_eq!(value.canonical(), reads_as);
        }
    }

    #[test]
    fn a_rule_is_found_by_head_and_number_of_arguments() {
        let f = |items: &[Value]| Value::expression([&[Value::atom("f")], items].concat());
        assert_eq!(f(&[Value::Long(1), Value::atom("$x")]).head(), Some(("f", 2)));
        assert_eq!(Value::atom("f").head(), Some(("f", 0)));
        for headless in
            [Value::atom("$f"), Value::expression([Value::atom("$f")]), Value::expression([f(&[])]), Value::Nil]
        {
            assert_eq!(headless.head(), None);
        }
    }

    #[test]
    fn floats_are_equal_by_their_bits() {
        assert_ne!(Value::Float(0.0), Value::Float(-0.0));
        assert_eq!(Value::Float(f64::NAN), Value::Float(f64::NAN));
    }

    #[test]
    fn there_are_names_for_all_levels() {
        assert_eq!([0, 25, 26, 63].map(variable_name), ["$a", "$z", "$a1", "$l2"]);
    }
}
