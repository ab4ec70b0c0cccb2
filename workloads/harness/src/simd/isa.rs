//! Instruction sets and their selection.

use super::Kernel;
#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::portable::Portable;
use crate::path::{self, Unavailable};

/// A requested instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The widest supported one.
    Auto,
    /// Plain integers, compiled for the baseline of the architecture.
    Portable,
    /// AVX2.
    Avx2,
    /// AVX-512 with the F, BW, DQ and VL extensions.
    Avx512,
    /// NEON.
    Neon,
}

crate::choices!(Path { "auto" => Auto, "portable" => Portable, "avx2" => Avx2, "avx512" => Avx512, "neon" => Neon });

/// An instruction set that this CPU has.
#[derive(Debug, Clone, Copy)]
pub enum Isa {
    /// Plain integers.
    Portable(Portable),
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Isa {
    /// Resolves the request `path`.
    ///
    /// # Errors
    ///
    /// If the CPU does not have it.
    pub fn select(path: Path) -> Result<Self, Unavailable> {
        path::select(path, &Path::CHOICES, &Self::available(), Self::name)
    }

    /// All instruction sets of this CPU, from narrow to wide.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable(Portable)];
        #[cfg(target_arch = "x86_64")]
        all.extend(Avx2::detect().map(Self::Avx2));
        #[cfg(target_arch = "x86_64")]
        all.extend(Avx512::detect().map(Self::Avx512));
        #[cfg(target_arch = "aarch64")]
        all.extend(Neon::detect().map(Self::Neon));
        all
    }

    /// The name on the command line and in the result.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Portable(_) => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        }
    }

    /// The CPU features used beyond the architecture's baseline.
    #[must_use]
    pub fn features(&self) -> &'static str {
        match self {
            Self::Portable(_) => "",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512f,avx512bw,avx512dq,avx512vl",
            // Part of the architecture's baseline.
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "",
        }
    }

    /// Runs `kernel` with these instructions.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable(simd) => kernel.run(simd),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => simd.run(kernel),
        }
    }
}
