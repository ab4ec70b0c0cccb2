//! Input of an adapter.

/// One output of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// `standard output`, or the file's path. Within a folder, the path determines the kind of file.
    pub name: String,
    /// Content of the output.
    pub bytes: Vec<u8>,
}

/// Computes line numbers incrementally.
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// Returns the line of a position. Positions must not decrease between calls.
    pub(crate) fn of(&mut self, position: usize) -> usize {
        let target = position.min(self.bytes.len()).max(self.at);
        self.line += self.bytes[self.at..target].iter().filter(|&&byte| byte == b'\n').count();
        self.at = target;
        self.line
    }
}
