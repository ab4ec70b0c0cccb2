//! Cryptographic digest of the outputs, to detect arms with different outputs.

/// A running BLAKE3 digest over outputs.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    hasher: blake3::Hasher,
    items: u64,
}

impl Digest {
    /// Creates the digest of no outputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one output. All outputs of a kernel have the same length, so that no separator is needed.
    pub fn add(&mut self, output: &[u8]) {
        self.hasher.update(output);
        self.items += 1;
    }

    /// Number of outputs added.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The current digest in lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}
