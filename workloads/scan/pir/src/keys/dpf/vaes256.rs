//! The generator with VAES on 256-bit vectors: two blocks per instruction, up to sixteen in flight. Some CPUs have it without AVX-512.

use std::arch::x86_64::{
    __m256i as Vector, _mm256_aesenc_epi128 as encrypt, _mm256_aesenclast_epi128 as encrypt_last,
    _mm256_and_si256 as and, _mm256_andnot_si256 as and_not, _mm256_loadu_si256 as load,
    _mm256_shuffle_epi32 as shuffle, _mm256_slli_epi32 as shift_left, _mm256_srai_epi32 as shift_right,
    _mm256_storeu_si256 as store, _mm256_xor_si256 as xor, *,
};

use assay_harness::aes::ROUND_KEYS;

use super::aes_ni::AesNi;
use super::node::{CONTROL, Correction, Node};

super::vaes::generator!(Vaes256, "avx2", "avx2,vaes", 2);

/// The blocks of two vectors in turn.
#[inline]
#[target_feature(enable = "avx2")]
fn in_turn(left: Vector, right: Vector) -> [Vector; 2] {
    // left: l0 l1, right: r0 r1 -> l0 r0, l1 r1.
    [_mm256_permute2x128_si256::<0x20>(left, right), _mm256_permute2x128_si256::<0x31>(left, right)]
}

/// The same block in both lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(block: u128) -> Vector {
    _mm256_broadcastsi128_si256(_mm_set_epi64x((block >> 64) as i64, block as i64))
}
