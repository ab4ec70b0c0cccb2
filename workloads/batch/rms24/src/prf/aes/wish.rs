//! The names of the ways to compute AES.

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

assay_harness::choices!(Wish {
    "auto" => Auto,
    "portable" => Portable,
    "aes-ni" => AesNi,
    "vaes256" => Vaes256,
    "vaes512" => Vaes512,
});
