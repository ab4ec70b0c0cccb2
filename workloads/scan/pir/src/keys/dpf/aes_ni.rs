//! The generator with AES-NI: one block per instruction, eight in flight.

use std::arch::x86_64::*;
use std::sync::OnceLock;

use assay_harness::aes::{self, ROUND_KEYS, vector};

use super::node::{CONTROL, Correction, FIXED_KEYS, Node};

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
    pub(super) fn grow(self, nodes: &[Node], correction: Correction, children: &mut [Node]) {
        // SAFETY: `self` holds the proof that AES-NI was detected.
        unsafe { grow(self.round_keys(), nodes, correction, children) }
    }

    /// The round keys of both fixed keys.
    pub(super) fn round_keys(self) -> &'static [[u128; ROUND_KEYS]; 2] {
        static KEYS: OnceLock<[[u128; ROUND_KEYS]; 2]> = OnceLock::new();
        KEYS.get_or_init(|| FIXED_KEYS.map(|key| self.0.round_keys(key)))
    }
}

#[target_feature(enable = "aes")]
fn grow(keys: &[[u128; ROUND_KEYS]; 2], nodes: &[Node], correction: Correction, children: &mut [Node]) {
    let control = vector(CONTROL);
    let correction = correction.map(vector);
    for (parents, children) in nodes.chunks_exact(NODES).zip(children.chunks_exact_mut(2 * NODES)) {
        let parents: [__m128i; NODES] = std::array::from_fn(|i| {
            // SAFETY: a node is 16 bytes.
            unsafe { _mm_loadu_si128(parents[i].as_ptr().cast()) }
        });
        let seeds = parents.map(|parent| _mm_andnot_si128(control, parent));
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
            // All ones where the control bit is set: the lowest 32 bits everywhere, shifted up and back.
            let low = _mm_shuffle_epi32::<0x00>(parents[i]);
            let corrected = _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(low));
            for side in 0..2 {
                let block = _mm_aesenclast_si128(blocks[i][side], vector(keys[side][ROUND_KEYS - 1]));
                let fix = _mm_xor_si128(seeds[i], _mm_and_si128(correction[side], corrected));
                // SAFETY: a node is 16 bytes.
                unsafe { _mm_storeu_si128(children[2 * i + side].as_mut_ptr().cast(), _mm_xor_si128(block, fix)) };
            }
        }
    }
}
