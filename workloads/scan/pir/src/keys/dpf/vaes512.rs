//! The generator with VAES: four blocks per instruction, up to sixteen in flight.

use std::arch::x86_64::*;

use assay_harness::aes::ROUND_KEYS;

use super::aes_ni::AesNi;
use super::node::{CONTROL, Correction, Node};

/// Nodes in a vector.
const LANES: usize = 4;

/// Proof that the CPU has AES on 512-bit vectors. It is made by [`Vaes512::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub struct Vaes512(AesNi);

impl Vaes512 {
    /// The proof, where the CPU has the instructions and the system saves their registers.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vaes");
        AesNi::detect().filter(|_| wide).map(Self)
    }

    /// Writes the corrected children of `nodes`, whose number is a multiple of four.
    pub(super) fn grow(self, nodes: &[Node], correction: Correction, children: &mut [Node]) {
        // SAFETY: `self` exists only where the features were detected.
        unsafe { grow(self.0.round_keys(), nodes, correction, children) }
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn grow(keys: &[[u128; ROUND_KEYS]; 2], nodes: &[Node], correction: Correction, children: &mut [Node]) {
    let keys: [[__m512i; ROUND_KEYS]; 2] = std::array::from_fn(|side| keys[side].map(|key| broadcast(key)));
    let correction = correction.map(|block| broadcast(block));
    let nodes = nodes.chunks_exact(LANES);
    let mut nodes = nodes.map(|four| {
        // SAFETY: four nodes are 64 bytes.
        unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
    });
    let mut children = children.chunks_exact_mut(2 * LANES);
    let mut store = |blocks: [__m512i; 2]| {
        let room = children.next().expect("there is room for two children per node");
        // SAFETY: the room is that of eight nodes, 128 bytes.
        unsafe {
            _mm512_storeu_si512(room.as_mut_ptr().cast(), blocks[0]);
            _mm512_storeu_si512(room[LANES..].as_mut_ptr().cast(), blocks[1]);
        }
    };
    while nodes.len() >= 4 {
        let four = std::array::from_fn::<_, 4, _>(|_| nodes.next().expect("four vectors are left"));
        children_of(&keys, four, correction).into_iter().for_each(&mut store);
    }
    for one in nodes {
        children_of(&keys, [one], correction).into_iter().for_each(&mut store);
    }
}

/// The corrected children of `N` vectors of four nodes, two vectors each: left and right in turn.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn children_of<const N: usize>(
    keys: &[[__m512i; ROUND_KEYS]; 2],
    nodes: [__m512i; N],
    correction: [__m512i; 2],
) -> [[__m512i; 2]; N] {
    let control = broadcast(CONTROL);
    let seeds = nodes.map(|node| _mm512_andnot_si512(control, node));
    let mut blocks: [[__m512i; 2]; N] =
        std::array::from_fn(|i| std::array::from_fn(|side| _mm512_xor_si512(seeds[i], keys[side][0])));
    for round in 1..ROUND_KEYS - 1 {
        for node in &mut blocks {
            for (block, keys) in node.iter_mut().zip(keys) {
                *block = _mm512_aesenc_epi128(*block, keys[round]);
            }
        }
    }
    std::array::from_fn(|i| {
        // All ones in the nodes whose control bit is set: the lowest 32 bits of each, shifted up and back, everywhere.
        let low = _mm512_shuffle_epi32::<0x00>(nodes[i]);
        let corrected = _mm512_srai_epi32::<31>(_mm512_slli_epi32::<31>(low));
        let [left, right]: [__m512i; 2] = std::array::from_fn(|side| {
            let block = _mm512_aesenclast_epi128(blocks[i][side], keys[side][ROUND_KEYS - 1]);
            _mm512_xor_si512(_mm512_xor_si512(block, seeds[i]), _mm512_and_si512(correction[side], corrected))
        });
        // left: l0 l1 l2 l3, right: r0 r1 r2 r3 -> l0 r0 l1 r1, l2 r2 l3 r3.
        let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        [_mm512_permutex2var_epi64(left, low, right), _mm512_permutex2var_epi64(left, high, right)]
    })
}

/// The same block in all four lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(block: u128) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x((block >> 64) as i64, block as i64))
}
