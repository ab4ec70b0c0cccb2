//! The byte form: one trie path per top-level expression.
//!
//! Every item begins with a tag byte:
//!
//! | byte | item |
//! |---|---|
//! | `00aaaaaa` | an expression of `a` items (0 to 63), which follow |
//! | `11ssssss` | a symbol of `s` bytes (1 to 63), which follow |
//! | `11000000` | a new variable |
//! | `10iiiiii` | the variable of De Bruijn level `i` again (0 to 63) |
//!
//! Lengths precede contents, so that no path is a prefix of another. Variables have no names: expressions that differ
//! only in those have the same path.

mod decode;
mod encode;
mod parse;

pub use decode::{Malformed, decode};
pub use encode::{encode, encode_rule};
pub use parse::Parser;

use std::fmt;

use assay_harness::Failure;

/// Items of an expression, at most.
pub const MAX_ARITY: usize = 63;
/// Bytes of a symbol, at most.
pub const MAX_SYMBOL: usize = 63;
/// Variables of one top-level expression, at most.
pub const MAX_VARIABLES: usize = 64;
/// Maximum length of a path in bytes, the range of a branch in [`crate::store::Trie`].
pub const MAX_PATH: usize = (1 << 14) - 1;
/// Expressions within expressions, at most. All readers and writers are recursive; this keeps them on the stack.
pub const MAX_DEPTH: usize = 512;

/// Marks a new variable.
pub const NEW_VARIABLE: u8 = 0b1100_0000;
const VARIABLE: u8 = 0b1000_0000;
const SYMBOL: u8 = 0b1100_0000;

/// A byte, read as a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// An expression with this number of items.
    Arity(usize),
    /// A symbol with this number of bytes.
    Symbol(usize),
    /// A variable that has not occurred before.
    NewVariable,
    /// The variable of that level.
    Variable(usize),
}

impl Tag {
    /// Decodes a tag; `None` for the unassigned quarter of all bytes.
    #[must_use]
    pub const fn of(byte: u8) -> Option<Self> {
        let low = (byte & 0b0011_1111) as usize;
        match byte >> 6 {
            0b00 => Some(Self::Arity(low)),
            0b10 => Some(Self::Variable(low)),
            0b11 if low == 0 => Some(Self::NewVariable),
            0b11 => Some(Self::Symbol(low)),
            _ => None,
        }
    }
}

/// Why a value or a text has no byte form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unencodable {
    /// An expression has too many items.
    TooManyItems(usize),
    /// A symbol is too long.
    SymbolTooLong(usize),
    /// An atom's name is empty or has characters that end a token.
    NotAnAtom(String),
    /// There are too many variables.
    TooManyVariables,
    /// The whole is too long.
    TooLong(usize),
    /// Too many expressions within each other.
    TooDeep,
    /// A text is not an expression; the position is in bytes.
    Syntax {
        /// Where.
        at: usize,
        /// Description of the error.
        problem: &'static str,
    },
}

impl fmt::Display for Unencodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyItems(items) => write!(f, "an expression has {items} items; at most {MAX_ARITY} are possible"),
            Self::SymbolTooLong(bytes) => write!(f, "a symbol has {bytes} bytes; at most {MAX_SYMBOL} are possible"),
            Self::NotAnAtom(name) => write!(f, "{name:?} is not an atom: a name has no space, parenthesis or quote"),
            Self::TooManyVariables => write!(f, "an expression has more than {MAX_VARIABLES} variables"),
            Self::TooLong(bytes) => write!(f, "an expression takes {bytes} bytes; at most {MAX_PATH} are possible"),
            Self::TooDeep => write!(f, "more than {MAX_DEPTH} expressions are within each other"),
            Self::Syntax { at, problem } => write!(f, "byte {at} of the text: {problem}"),
        }
    }
}

impl std::error::Error for Unencodable {}

impl From<Unencodable> for Failure {
    fn from(why: Unencodable) -> Self {
        Self::error(why)
    }
}

/// Appends the tag of a variable.
fn push_variable((level, new): (usize, bool), out: &mut Vec<u8>) -> Result<(), Unencodable> {
    if level >= MAX_VARIABLES {
        return Err(Unencodable::TooManyVariables);
    }
    out.push(if new { NEW_VARIABLE } else { VARIABLE | level as u8 });
    Ok(())
}

/// Appends a symbol.
#[inline]
pub(crate) fn push_symbol(symbol: &[u8], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    if symbol.len() > MAX_SYMBOL {
        return Err(Unencodable::SymbolTooLong(symbol.len()));
    }
    out.push(SYMBOL | symbol.len() as u8);
    out.extend_from_slice(symbol);
    Ok(())
}

/// Checks the length of a finished path.
pub(crate) fn check_length(bytes: usize) -> Result<(), Unencodable> {
    if bytes > MAX_PATH { Err(Unencodable::TooLong(bytes)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::Tag;

    #[test]
    fn three_quarters_of_all_bytes_are_tags() {
        assert_eq!(Tag::of(0), Some(Tag::Arity(0)));
        assert_eq!(Tag::of(63), Some(Tag::Arity(63)));
        assert_eq!(Tag::of(0xc0), Some(Tag::NewVariable));
        assert_eq!(Tag::of(0xc1), Some(Tag::Symbol(1)));
        assert_eq!(Tag::of(0xff), Some(Tag::Symbol(63)));
        assert_eq!(Tag::of(0x80), Some(Tag::Variable(0)));
        assert_eq!((0..=255).filter(|byte| Tag::of(*byte).is_none()).count(), 64);
    }
}
