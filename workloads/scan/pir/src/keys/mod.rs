//! Keys, which a client sends to a server: a compact encoding of one bit per row.

mod bad_key;
pub mod dpf;
pub mod toy;

use assay_harness::simd::Isa;

pub use bad_key::BadKey;
pub use dpf::{DpfKey, Prg};
pub use toy::ToyKey;

/// Which kind of key the queries have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The document's stand-in: cheap to write, dear to evaluate, and not private.
    Toy,
    /// A distributed point function.
    Dpf,
}

assay_harness::choices!(KeyKind { "toy" => Toy, "dpf" => Dpf });

/// The keys of a batch, all of one kind.
#[derive(Debug, Clone)]
pub enum Keys {
    /// Toy keys.
    Toy(Vec<ToyKey>),
    /// Distributed point functions.
    Dpf(Vec<DpfKey>),
}

impl Keys {
    /// Reads the keys of a batch, as they came over the wire, for a matrix of `rows` rows.
    ///
    /// # Errors
    ///
    /// When a key is not of this kind or not for this matrix.
    pub fn parse<'a>(kind: KeyKind, rows: usize, keys: impl Iterator<Item = &'a [u8]>) -> Result<Self, BadKey> {
        Ok(match kind {
            KeyKind::Toy => Self::Toy(keys.map(ToyKey::from_bytes).collect::<Result<_, _>>()?),
            KeyKind::Dpf => Self::Dpf(keys.map(|bytes| DpfKey::from_bytes(bytes, rows)).collect::<Result<_, _>>()?),
        })
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Toy(keys) => keys.len(),
            Self::Dpf(keys) => keys.len(),
        }
    }

    /// Whether the number of keys is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bits of key `key` for the first `rows` rows: those of a toy key with the instructions of `isa`, those of a distributed
    /// point function with the generator `prg`.
    pub fn expand(&self, key: usize, isa: Isa, prg: Prg, rows: usize, words: &mut [u64]) {
        match self {
            Self::Toy(keys) => keys[key].expand(isa, rows, words),
            Self::Dpf(keys) => keys[key].expand(prg, rows, words),
        }
    }
}
