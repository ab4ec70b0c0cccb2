//! Squared distance of two codes, one byte per coordinate: whole numbers, so that every way gives the same.
//!
//! There are no intrinsics: the same loop is compiled for several instruction sets, which all multiply and add pairs of 16-bit numbers.

/// The sum. 4,096 coordinates of at most 255 steps stay far below 2^32.
#[inline(always)]
fn sum(a: &[u8], b: &[u8]) -> u32 {
    let squared = |(x, y): (&u8, &u8)| {
        let difference = i16::from(*x) - i16::from(*y);
        i32::from(difference) * i32::from(difference)
    };
    a.iter().zip(b).map(squared).sum::<i32>().cast_unsigned()
}

/// One after the other: the slow reference of the others.
pub(super) fn in_order(a: &[u8], b: &[u8]) -> u32 {
    let mut total = 0;
    for (x, y) in a.iter().zip(b) {
        total = std::hint::black_box(total + u32::from(x.abs_diff(*y)).pow(2));
    }
    total
}

/// Uses the architecture's baseline only.
pub(super) fn plain(a: &[u8], b: &[u8]) -> u32 {
    sum(a, b)
}

/// With AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(a: &[u8], b: &[u8]) -> u32 {
    sum(a, b)
}

/// With AVX-512 F and BW.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn avx512(a: &[u8], b: &[u8]) -> u32 {
    sum(a, b)
}
