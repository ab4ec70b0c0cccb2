//! The generator with VAES on 256-bit vectors: two blocks per instruction, up to sixteen in flight. Some CPUs have it without AVX-512.

use std::arch::x86_64::*;

use assay_harness::aes::ROUND_KEYS;

use super::aes_ni::AesNi;
use super::node::{CONTROL, Correction, Node};

/// Nodes in a vector.
const LANES: usize = 2;

/// Proof that the CPU has AES on 256-bit vectors. It is made by [`Vaes256::detect`] alone.
#[derive(Debug, Clone, Copy)]
pub struct Vaes256(AesNi);

impl Vaes256 {
    /// The proof, where the CPU has the instructions and the system saves their registers.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let wide = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("vaes");
        AesNi::detect().filter(|_| wide).map(Self)
    }

    /// Writes the corrected children of `nodes`, whose number is a multiple of two.
    pub(super) fn grow(self, nodes: &[Node], correction: Correction, children: &mut [Node]) {
        // SAFETY: `self` exists only where the features were detected.
        unsafe { grow(self.0.round_keys(), nodes, correction, children) }
    }
}

#[target_feature(enable = "avx2,vaes")]
fn grow(keys: &[[u128; ROUND_KEYS]; 2], nodes: &[Node], correction: Correction, children: &mut [Node]) {
    let keys: [[__m256i; ROUND_KEYS]; 2] = std::array::from_fn(|side| keys[side].map(|key| broadcast(key)));
    let correction = correction.map(|block| broadcast(block));
    let nodes = nodes.chunks_exact(LANES);
    let mut nodes = nodes.map(|two| {
        // SAFETY: two nodes are 32 bytes.
        unsafe { _mm256_loadu_si256(two.as_ptr().cast()) }
    });
    let mut children = children.chunks_exact_mut(2 * LANES);
    let mut store = |blocks: [__m256i; 2]| {
        let room = children.next().expect("there is room for two children per node");
        // SAFETY: the room is that of four nodes, 64 bytes.
        unsafe {
            _mm256_storeu_si256(room.as_mut_ptr().cast(), blocks[0]);
            _mm256_storeu_si256(room[LANES..].as_mut_ptr().cast(), blocks[1]);
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

/// The corrected children of `N` vectors of two nodes, two vectors each: left and right in turn.
#[inline]
#[target_feature(enable = "avx2,vaes")]
fn children_of<const N: usize>(
    keys: &[[__m256i; ROUND_KEYS]; 2],
    nodes: [__m256i; N],
    correction: [__m256i; 2],
) -> [[__m256i; 2]; N] {
    let control = broadcast(CONTROL);
    let seeds = nodes.map(|node| _mm256_andnot_si256(control, node));
    let mut blocks: [[__m256i; 2]; N] =
        std::array::from_fn(|i| std::array::from_fn(|side| _mm256_xor_si256(seeds[i], keys[side][0])));
    for round in 1..ROUND_KEYS - 1 {
        for node in &mut blocks {
            for (block, keys) in node.iter_mut().zip(keys) {
                *block = _mm256_aesenc_epi128(*block, keys[round]);
            }
        }
    }
    std::array::from_fn(|i| {
        // All ones in the nodes whose control bit is set: the lowest 32 bits of each, shifted up and back, everywhere.
        let low = _mm256_shuffle_epi32::<0x00>(nodes[i]);
        let corrected = _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(low));
        let [left, right]: [__m256i; 2] = std::array::from_fn(|side| {
            let block = _mm256_aesenclast_epi128(blocks[i][side], keys[side][ROUND_KEYS - 1]);
            let fix = _mm256_xor_si256(seeds[i], _mm256_and_si256(correction[side], corrected));
            _mm256_xor_si256(block, fix)
        });
        // left: l0 l1, right: r0 r1 -> l0 r0, l1 r1.
        [_mm256_permute2x128_si256::<0x20>(left, right), _mm256_permute2x128_si256::<0x31>(left, right)]
    })
}

/// The same block in both lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(block: u128) -> __m256i {
    _mm256_broadcastsi128_si256(_mm_set_epi64x((block >> 64) as i64, block as i64))
}
