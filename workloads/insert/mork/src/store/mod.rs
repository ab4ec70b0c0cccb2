//! Where paths are kept.

mod trie;

use std::collections::BTreeMap;

pub(crate) use trie::Span;
pub use trie::{Full, Trie};

/// The slow, obviously correct store: an ordered map from path to how often it was inserted, as far as that was to be counted.
pub type Reference = BTreeMap<Vec<u8>, u64>;
