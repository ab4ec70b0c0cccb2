//! The generator with the `aes` crate of RustCrypto: the reference for the others.

use std::sync::LazyLock;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::node::{CONTROL, Correction, FIXED_KEYS};

static CIPHERS: LazyLock<[Aes128; 2]> = LazyLock::new(|| FIXED_KEYS.map(|key| Aes128::new(&Array(key))));

/// Writes the corrected children of `nodes`.
pub(super) fn grow(nodes: &[u128], correction: Correction, children: &mut [u128]) {
    for (node, pair) in nodes.iter().zip(children.chunks_exact_mut(2)) {
        let seed = node & !CONTROL;
        for ((child, cipher), correction) in pair.iter_mut().zip(&*CIPHERS).zip(correction) {
            let mut block = Array(seed.to_le_bytes());
            cipher.encrypt_block(&mut block);
            *child = u128::from_le_bytes(block.0) ^ seed ^ if node & CONTROL == 1 { correction } else { 0 };
        }
    }
}
