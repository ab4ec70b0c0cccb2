//! Error for bytes that are not a key.

use std::fmt;

/// Bytes that are not a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadKey {
    /// The length a key has.
    pub expected: usize,
    /// The length that was found.
    pub found: usize,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key has {} bytes, not {}", self.expected, self.found)
    }
}

impl std::error::Error for BadKey {}
