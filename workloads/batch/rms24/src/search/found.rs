//! Result of a search.

/// The outcome of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The slot of a hint that contains the entry.
    pub slot: Option<u32>,
    /// How many slots were looked at.
    pub examined: u32,
}
