//! The generator with the `aes` crate of RustCrypto: the reference for the others.

use std::sync::LazyLock;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::node::{CONTROL, Correction, FIXED_KEYS, Node, block, node};

static CIPHERS: LazyLock<[Aes128; 2]> = LazyLock::new(|| FIXED_KEYS.map(|key| Aes128::new(&Array(key))));

/// Writes the corrected children of `nodes`.
pub(super) fn grow(nodes: &[Node], correction: Correction, children: &mut [Node]) {
    for (parent, pair) in nodes.iter().zip(children.chunks_exact_mut(2)) {
        let parent = block(*parent);
        let seed = parent & !CONTROL;
        for ((child, cipher), correction) in pair.iter_mut().zip(&*CIPHERS).zip(correction) {
            let mut output = Array(seed.to_le_bytes());
            cipher.encrypt_block(&mut output);
            let corrected = if parent & CONTROL == 1 { correction } else { 0 };
            *child = node(u128::from_le_bytes(output.0) ^ seed ^ corrected);
        }
    }
}
