//! What an adapter reads.

/// Something that the tool wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What to call it: `standard output`, or the file's path. Below a folder it decides what the file is.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Counts lines from one position to the next.
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// The line of a position, which is not before the last one.
    pub(crate) fn of(&mut self, position: usize) -> usize {
        let target = position.min(self.bytes.len()).max(self.at);
        self.line += self.bytes[self.at..target].iter().filter(|&&byte| byte == b'\n').count();
        self.at = target;
        self.line
    }
}
