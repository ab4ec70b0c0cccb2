//! What an adapter reads.

/// Something that the tool wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What to call it: `standard output`, or the file's path. Below a folder it decides what the file is.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}
