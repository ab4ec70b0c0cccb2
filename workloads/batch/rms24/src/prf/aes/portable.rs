//! AES with the `aes` crate of RustCrypto: the reference for the others.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// Blocks handed over at a time.
const IN_FLIGHT: usize = 8;

/// A cipher under one key.
#[derive(Clone)]
pub(super) struct Portable(Aes128);

impl std::fmt::Debug for Portable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Portable")
    }
}

impl Portable {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self(Aes128::new(&Array(key)))
    }

    pub(super) fn fill(&self, mut low: u64, step: u64, high: u64, outputs: &mut [u128]) {
        for outputs in outputs.chunks_mut(IN_FLIGHT) {
            let mut blocks = [Array([0; 16]); IN_FLIGHT];
            for block in &mut blocks {
                *block = Array((u128::from(high) << 64 | u128::from(low)).to_le_bytes());
                low = low.wrapping_add(step);
            }
            self.0.encrypt_blocks(&mut blocks[..outputs.len()]);
            for (output, block) in outputs.iter_mut().zip(blocks) {
                *output = u128::from_le_bytes(block.0);
            }
        }
    }
}
