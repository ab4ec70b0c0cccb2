//! A strong digest of the outputs: arms that disagree are wrong before they are slow.

/// A running BLAKE3 digest over outputs.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    hasher: blake3::Hasher,
    items: u64,
}

impl Digest {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one output. Outputs of one kernel have one length, so that they need no separator.
    pub fn add(&mut self, output: &[u8]) {
        self.hasher.update(output);
        self.items += 1;
    }

    /// How many outputs were added.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The digest so far, in lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}
