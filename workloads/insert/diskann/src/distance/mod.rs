//! Squared Euclidean distance.
//!
//! [`scalar`](Path::Scalar) adds in order, as the document's C does. The other paths keep 64 sums and agree with each other to the last
//! bit, so that an index built on one machine is the index that any other would have built.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod codes;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use assay_harness::path::{self, Unavailable};

/// A wish for a way to compute distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The widest the CPU has.
    Auto,
    /// One sum, in order.
    Scalar,
    /// The 64 sums in plain code.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F and BW.
    Avx512,
    /// NEON.
    Neon,
}

assay_harness::choices!(Path {
    "auto" => Auto,
    "scalar" => Scalar,
    "portable" => Portable,
    "avx2" => Avx2,
    "avx512" => Avx512,
    "neon" => Neon,
});

/// A way to compute distances that this CPU has.
#[derive(Debug, Clone, Copy)]
pub struct Distance {
    name: &'static str,
    squared: fn(&[f32], &[f32]) -> f32,
    steps: fn(&[u8], &[u8]) -> u32,
}

impl Distance {
    /// One sum, in order.
    pub const SCALAR: Self = Self { name: "scalar", squared: scalar::squared, steps: codes::in_order };
    /// The 64 sums in plain code.
    pub const PORTABLE: Self = Self { name: "portable", squared: lanes::squared, steps: codes::plain };

    /// The way that `path` asks for.
    ///
    /// # Errors
    ///
    /// When the CPU does not have it.
    pub fn select(path: Path) -> Result<Self, Unavailable> {
        path::select(path, &Path::CHOICES, &Self::available(), Self::name)
    }

    /// Every way that this CPU has, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::SCALAR, Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 {
                all.push(Self {
                    name: "avx2",
                    // SAFETY: both features were just detected.
                    squared: |a, b| unsafe { avx2::squared(a, b) },
                    // SAFETY: the feature was just detected.
                    steps: |a, b| unsafe { codes::avx2(a, b) },
                });
            }
            if avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                all.push(Self {
                    name: "avx512",
                    // SAFETY: all three features were just detected.
                    squared: |a, b| unsafe { avx512::squared(a, b) },
                    // SAFETY: both features were just detected.
                    steps: |a, b| unsafe { codes::avx512(a, b) },
                });
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            // SAFETY: the feature was just detected.
            all.push(Self { name: "neon", squared: |a, b| unsafe { neon::squared(a, b) }, steps: codes::plain });
        }
        all
    }

    /// Its name on a command line and in a result.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The squared distance of two vectors of one length.
    #[inline]
    #[must_use]
    pub fn squared(&self, a: &[f32], b: &[f32]) -> f32 {
        debug_assert_eq!(a.len(), b.len());
        (self.squared)(a, b)
    }

    /// The squared distance of two codes of one length, in squared steps. Every way gives the same number.
    #[inline]
    #[must_use]
    pub fn steps(&self, a: &[u8], b: &[u8]) -> u32 {
        debug_assert_eq!(a.len(), b.len());
        (self.steps)(a, b)
    }
}

/// A distance that counts how often it is computed.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    distance: Distance,
    count: u64,
}

impl Meter {
    /// Starts counting.
    #[must_use]
    pub fn new(distance: Distance) -> Self {
        Self { distance, count: 0 }
    }

    /// The squared distance of two vectors of one length.
    #[inline]
    pub fn squared(&mut self, a: &[f32], b: &[f32]) -> f32 {
        self.count += 1;
        self.distance.squared(a, b)
    }

    /// The squared distance of two codes of one length, in squared steps.
    #[inline]
    pub fn steps(&mut self, a: &[u8], b: &[u8]) -> u32 {
        self.count += 1;
        self.distance.steps(a, b)
    }

    /// How often a distance was computed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How it is computed.
    #[must_use]
    pub fn distance(&self) -> Distance {
        self.distance
    }
}
