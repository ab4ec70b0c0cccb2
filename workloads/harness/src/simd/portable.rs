//! Vectors of four plain 64-bit integers, correct on every CPU and vectorized by the compiler.

use super::Simd;

/// Needs nothing beyond the architecture's baseline.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

/// The same byte eight times.
const fn repeat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

#[inline(always)]
fn map(f: impl Fn(usize) -> u64) -> [u64; 4] {
    [f(0), f(1), f(2), f(3)]
}

impl Simd for Portable {
    const BYTES: usize = 32;
    const REGISTERS: usize = 8;
    type Vector = [u64; 4];
    type Mask = u64;

    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> [u64; 4] {
        // SAFETY: the caller promises 32 readable bytes; any bytes are four integers.
        unsafe { from.cast::<[u64; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8, vector: [u64; 4]) {
        // SAFETY: the caller promises 32 writable bytes.
        unsafe { to.cast::<[u64; 4]>().write_unaligned(vector) }
    }

    #[inline(always)]
    fn xor(self, a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
        map(|i| a[i] ^ b[i])
    }

    #[inline(always)]
    fn xor3(self, a: [u64; 4], b: [u64; 4], c: [u64; 4]) -> [u64; 4] {
        map(|i| a[i] ^ b[i] ^ c[i])
    }

    #[inline(always)]
    fn mask(self, bit: u64) -> u64 {
        (bit & 1).wrapping_neg()
    }

    #[inline(always)]
    fn xor_masked(self, a: [u64; 4], b: [u64; 4], mask: u64) -> [u64; 4] {
        map(|i| a[i] ^ (b[i] & mask))
    }

    #[inline(always)]
    fn splat(self, byte: u8) -> [u64; 4] {
        [u64::from(byte) * repeat(1); 4]
    }

    #[inline(always)]
    fn add(self, a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
        // The low seven bits of every byte cannot carry into the next; the top bit is a sum without carry.
        map(|i| ((a[i] & repeat(0x7f)) + (b[i] & repeat(0x7f))) ^ ((a[i] ^ b[i]) & repeat(0x80)))
    }

    #[inline(always)]
    fn times8(self, a: [u64; 4]) -> [u64; 4] {
        map(|i| (a[i] << 3) & repeat(0xf8))
    }

    #[inline(always)]
    fn rotate_left_3(self, a: [u64; 4]) -> [u64; 4] {
        map(|i| ((a[i] << 3) & repeat(0xf8)) | ((a[i] >> 5) & repeat(0x07)))
    }

    #[inline(always)]
    fn nonzero(self, a: [u64; 4]) -> u64 {
        let mut bits = 0;
        for (i, word) in a.into_iter().enumerate() {
            // The top bit of every byte that is not zero, moved down; then a product gathers byte i's bit at 56 + i.
            let flags = (((word & repeat(0x7f)) + repeat(0x7f)) | word) >> 7 & repeat(1);
            bits |= (flags.to_le().wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
        }
        bits
    }
}
