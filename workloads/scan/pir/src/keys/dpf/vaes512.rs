//! The generator with VAES: four blocks per instruction, up to sixteen in flight.

use std::arch::x86_64::{
    __m512i as Vector, _mm512_aesenc_epi128 as encrypt, _mm512_aesenclast_epi128 as encrypt_last,
    _mm512_and_si512 as and, _mm512_andnot_si512 as and_not, _mm512_loadu_si512 as load,
    _mm512_shuffle_epi32 as shuffle, _mm512_slli_epi32 as shift_left, _mm512_srai_epi32 as shift_right,
    _mm512_storeu_si512 as store, _mm512_xor_si512 as xor, *,
};

use assay_harness::aes::ROUND_KEYS;

use super::aes_ni::AesNi;
use super::node::{CONTROL, Correction, Node};

super::vaes::generator!(Vaes512, "avx512f", "avx512f,vaes", 4);

/// The blocks of two vectors in turn.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_turn(left: Vector, right: Vector) -> [Vector; 2] {
    // left: l0 l1 l2 l3, right: r0 r1 r2 r3 -> l0 r0 l1 r1, l2 r2 l3 r3.
    let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    [_mm512_permutex2var_epi64(left, low, right), _mm512_permutex2var_epi64(left, high, right)]
}

/// The same block in all four lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(block: u128) -> Vector {
    _mm512_broadcast_i32x4(_mm_set_epi64x((block >> 64) as i64, block as i64))
}
