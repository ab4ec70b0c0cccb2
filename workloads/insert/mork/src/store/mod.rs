//! Where paths are kept.

mod reference;
mod trie;

pub use reference::Reference;
pub(crate) use trie::Span;
pub use trie::{Full, Trie};
