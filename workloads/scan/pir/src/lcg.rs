//! The document's generator: one byte per step of a linear congruential generator.
//!
//! ```text
//! s = s * 6364136223846793005 + 1  (mod 2^64)
//! byte = s >> 56
//! ```
//!
//! Step by step that is one dependent multiplication per byte, 64 MiB of them in every trial's start-up. But `n` steps at once are
//! also of the form `s * a + c`, so any number of lanes can run side by side, each `LANES` steps ahead of itself.

use assay_harness::simd::{Isa, Kernel, Path, Simd};

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1;
/// Steps taken side by side.
const LANES: usize = 64;

/// A number of steps at once: `s * a + c`.
#[derive(Debug, Clone, Copy)]
struct Jump {
    a: u64,
    c: u64,
}

impl Jump {
    const NONE: Self = Self { a: 1, c: 0 };
    const ONE: Self = Self { a: MULTIPLIER, c: INCREMENT };

    const fn apply(self, state: u64) -> u64 {
        state.wrapping_mul(self.a).wrapping_add(self.c)
    }

    /// First `self`, then `next`.
    const fn then(self, next: Self) -> Self {
        Self { a: self.a.wrapping_mul(next.a), c: next.apply(self.c) }
    }

    /// `steps` steps, by repeated squaring.
    const fn of(mut steps: u64) -> Self {
        let (mut jump, mut power) = (Self::NONE, Self::ONE);
        while steps > 0 {
            if steps & 1 == 1 {
                jump = jump.then(power);
            }
            power = power.then(power);
            steps >>= 1;
        }
        jump
    }
}

/// Fills `bytes` with the generator's output from byte `skip` on, as if it had run from `seed` byte by byte.
pub fn fill(bytes: &mut [u8], seed: u64, skip: u64) {
    let isa = Isa::select(Path::Auto).expect("there is always a widest path");
    isa.run(Fill { bytes, state: Jump::of(skip).apply(seed) });
}

struct Fill<'a> {
    bytes: &'a mut [u8],
    state: u64,
}

impl Kernel for Fill<'_> {
    type Output = ();

    /// Plain integer code: the compiler vectorises it for the instruction set it is compiled into.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        const JUMP: Jump = Jump::of(LANES as u64);
        let mut state = self.state;
        let mut lanes = [0; LANES];
        for lane in &mut lanes {
            state = Jump::ONE.apply(state);
            *lane = state;
        }
        let mut blocks = self.bytes.chunks_exact_mut(LANES);
        for block in &mut blocks {
            for (byte, lane) in block.iter_mut().zip(&mut lanes) {
                *byte = (*lane >> 56) as u8;
                *lane = JUMP.apply(*lane);
            }
        }
        for (byte, lane) in blocks.into_remainder().iter_mut().zip(lanes) {
            *byte = (lane >> 56) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator exactly as the document has it.
    fn slow(length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let step = || {
            state = state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
            (state >> 56) as u8
        };
        std::iter::repeat_with(step).take(length).collect()
    }

    #[test]
    fn jumping_ahead_gives_the_bytes_of_stepping() {
        for seed in [0, 1, 195_911_405, u64::MAX] {
            let expected = slow(1000, seed);
            for (from, to) in [(0, 1000), (0, 63), (0, 64), (1, 65), (63, 1000), (640, 641), (999, 999)] {
                let mut bytes = vec![0; to - from];
                fill(&mut bytes, seed, from as u64);
                assert_eq!(bytes, expected[from..to], "seed {seed}, bytes {from}..{to}");
            }
        }
    }

    #[test]
    fn the_documents_seed_starts_with_known_bytes() {
        let mut bytes = [0; 4];
        fill(&mut bytes, 0x0bad_5eed, 0);
        let s1 = 0x0bad_5eed_u64.wrapping_mul(MULTIPLIER).wrapping_add(1);
        assert_eq!(bytes[0], (s1 >> 56) as u8);
        assert_eq!(bytes, slow(4, 195_911_405)[..]);
    }
}
