//! The generator with AES-NI: one block per instruction, eight in flight.

use std::arch::x86_64::*;
use std::sync::OnceLock;

use assay_harness::aes::{self, ROUND_KEYS, integer, vector};

use super::node::{CONTROL, Correction, FIXED_KEYS};

/// Nodes in flight; each gives two blocks.
const NODES: usize = 4;

/// The generator where the CPU has AES-NI.
#[derive(Debug, Clone, Copy)]
pub struct AesNi(aes::AesNi);

impl AesNi {
    /// The generator, where the CPU has the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        aes::AesNi::detect().map(Self)
    }

    /// Writes the corrected children of `nodes`, whose number is a multiple of four.
    pub(super) fn grow(self, nodes: &[u128], correction: Correction, children: &mut [u128]) {
        // SAFETY: `self` holds the proof that AES-NI was detected.
        unsafe { grow(&self.round_keys(), nodes, correction, children) }
    }

    /// The round keys of both fixed keys.
    pub(super) fn round_keys(self) -> [[u128; ROUND_KEYS]; 2] {
        static KEYS: OnceLock<[[u128; ROUND_KEYS]; 2]> = OnceLock::new();
        *KEYS.get_or_init(|| FIXED_KEYS.map(|key| self.0.round_keys(key)))
    }
}

#[target_feature(enable = "aes")]
fn grow(keys: &[[u128; ROUND_KEYS]; 2], nodes: &[u128], correction: Correction, children: &mut [u128]) {
    for (nodes, children) in nodes.chunks_exact(NODES).zip(children.chunks_exact_mut(2 * NODES)) {
        let nodes: [u128; NODES] = std::array::from_fn(|i| nodes[i]);
        let seeds = nodes.map(|node| vector(node & !CONTROL));
        let mut blocks: [[__m128i; 2]; NODES] =
            std::array::from_fn(|i| std::array::from_fn(|side| _mm_xor_si128(seeds[i], vector(keys[side][0]))));
        for round in 1..ROUND_KEYS - 1 {
            for node in &mut blocks {
                for (block, keys) in node.iter_mut().zip(keys) {
                    *block = _mm_aesenc_si128(*block, vector(keys[round]));
                }
            }
        }
        for i in 0..NODES {
            let corrected = (nodes[i] & CONTROL).wrapping_neg();
            for side in 0..2 {
                let block = _mm_aesenclast_si128(blocks[i][side], vector(keys[side][ROUND_KEYS - 1]));
                let fix = vector(correction[side] & corrected);
                children[2 * i + side] = integer(_mm_xor_si128(_mm_xor_si128(block, seeds[i]), fix));
            }
        }
    }
}
