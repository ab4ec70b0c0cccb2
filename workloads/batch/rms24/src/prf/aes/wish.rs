//! The names of the ways to compute AES.

use assay_harness::flags;

/// A wish for a way to compute AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The fastest the CPU has.
    Auto,
    /// The `aes` crate, which brings its own detection.
    Portable,
    /// AES-NI with AVX2: one block per instruction.
    AesNi,
    /// VAES with AVX2: two blocks per instruction.
    Vaes256,
    /// VAES with AVX-512: four blocks per instruction.
    Vaes512,
}

impl Wish {
    /// Every wish, by the name it has on a command line.
    pub const CHOICES: [(&'static str, Self); 5] = [
        ("auto", Self::Auto),
        ("portable", Self::Portable),
        ("aes-ni", Self::AesNi),
        ("vaes256", Self::Vaes256),
        ("vaes512", Self::Vaes512),
    ];

    /// Its name on a command line and in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        flags::name(&self, &Self::CHOICES)
    }
}
