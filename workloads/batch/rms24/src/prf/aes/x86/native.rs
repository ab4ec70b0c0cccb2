//! A cipher of whichever width.

use assay_harness::aes::ROUND_KEYS;

use super::aes_ni::AesNi;
use super::vaes256::Vaes256;
use super::vaes512::Vaes512;
use super::wide::Work;
use crate::prf::aes::wish::Wish;

/// A width that this CPU has.
#[derive(Debug, Clone, Copy)]
pub(in crate::prf::aes) enum Width {
    /// One block: AES-NI.
    One(AesNi),
    /// Two: VAES.
    Two(Vaes256),
    /// Four: VAES with AVX-512.
    Four(Vaes512),
}

impl Width {
    /// Every width that this CPU has, the narrowest first.
    pub(in crate::prf::aes) fn available() -> Vec<Self> {
        let narrow = AesNi::detect().map(Self::One);
        narrow.into_iter().chain(Vaes256::detect().map(Self::Two)).chain(Vaes512::detect().map(Self::Four)).collect()
    }

    /// The wish that it fulfils.
    pub(in crate::prf::aes) fn wish(self) -> Wish {
        match self {
            Self::One(_) => Wish::AesNi,
            Self::Two(_) => Wish::Vaes256,
            Self::Four(_) => Wish::Vaes512,
        }
    }

    #[inline]
    fn run<T: Work>(self, work: T) -> T::Output {
        match self {
            Self::One(wide) => wide.run(work),
            Self::Two(wide) => wide.run(work),
            Self::Four(wide) => wide.run(work),
        }
    }
}

/// A cipher under one key.
#[derive(Clone)]
pub(in crate::prf::aes) struct Native {
    width: Width,
    keys: [u128; ROUND_KEYS],
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").field("width", &self.width).finish_non_exhaustive()
    }
}

impl Native {
    pub(in crate::prf::aes) fn new(width: Width, key: [u8; 16]) -> Self {
        let aes = assay_harness::aes::AesNi::detect().expect("every width has AES-NI beside it");
        Self { width, keys: aes.round_keys(key) }
    }

    /// The round keys.
    pub(in crate::prf::aes) fn keys(&self) -> &[u128; ROUND_KEYS] {
        &self.keys
    }

    /// Does the work.
    #[inline]
    pub(in crate::prf::aes) fn run<T: Work>(&self, work: T) -> T::Output {
        self.width.run(work)
    }
}
