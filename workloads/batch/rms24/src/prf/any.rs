//! One of the functions, chosen when a trial begins.

use super::aes::{AesPath, AesPrf};
use super::chacha::ChaChaPrf;
use super::{Prf, Secret};

/// Which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrfKind {
    /// ChaCha12, as the document's program.
    ChaCha,
    /// AES-128.
    Aes,
}

/// One of the functions.
#[expect(clippy::large_enum_variant, reason = "a client has one of them")]
#[derive(Debug, Clone)]
pub enum AnyPrf {
    /// ChaCha12.
    ChaCha(ChaChaPrf),
    /// AES-128.
    Aes(AesPrf),
}

impl AnyPrf {
    /// The function of a secret, for blocks of `block_size` entries.
    #[must_use]
    pub fn new(kind: PrfKind, secret: &Secret, block_size: u32, path: AesPath) -> Self {
        match kind {
            PrfKind::ChaCha => Self::ChaCha(ChaChaPrf::new(secret, block_size)),
            PrfKind::Aes => Self::Aes(AesPrf::new(secret, block_size, path)),
        }
    }

    /// Which it is.
    #[must_use]
    pub fn kind(&self) -> PrfKind {
        match self {
            Self::ChaCha(_) => PrfKind::ChaCha,
            Self::Aes(_) => PrfKind::Aes,
        }
    }

    fn inner(&self) -> &dyn Prf {
        match self {
            Self::ChaCha(prf) => prf,
            Self::Aes(prf) => prf,
        }
    }
}

impl Prf for AnyPrf {
    fn select(&self, hint: u32, block: u32) -> u32 {
        self.inner().select(hint, block)
    }

    fn offset(&self, hint: u32, block: u32) -> u32 {
        self.inner().offset(hint, block)
    }

    fn selects(&self, hint: u32, values: &mut [u32]) {
        self.inner().selects(hint, values);
    }

    fn offsets(&self, hint: u32, values: &mut [u32]) {
        self.inner().offsets(hint, values);
    }
}
