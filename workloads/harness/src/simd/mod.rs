//! One algorithm, several instruction sets, chosen once.
//!
//! A [`Kernel`] is written once over the [`Simd`] trait. [`Isa`] is a value that can only be made where the CPU has the
//! instructions ([`Isa::select`]), so running a kernel on it needs no further check and no `unsafe`. Every instruction set can
//! be asked for by name, and asking for one that is not there is an error, never a silent fallback.
//!
//! ```
//! use assay_harness::simd::{Isa, Kernel, Path, Simd};
//!
//! struct Bytes;
//! impl Kernel for Bytes {
//!     type Output = usize;
//!     fn run<S: Simd>(self, _: S) -> usize {
//!         S::BYTES
//!     }
//! }
//! assert_eq!(Isa::select(Path::Portable).unwrap().run(Bytes), 32);
//! ```
//!
//! Kernels must be `#[inline(always)]` all the way down: only then does their code end up inside the one function per
//! instruction set that is compiled with that set switched on.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod isa;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub use isa::{Isa, Path};
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use portable::Portable;

/// Vector operations of one instruction set. A value of the type proves that the CPU has it.
pub trait Simd: Copy + Send + Sync + 'static {
    /// Bytes per vector; a divisor of 64.
    const BYTES: usize;
    /// Vector registers of this width, for kernels that keep tables or accumulators in them.
    const REGISTERS: usize;
    /// A vector.
    type Vector: Copy;
    /// Selects all or none of a vector.
    type Mask: Copy;

    /// All zeroes.
    #[inline(always)]
    fn zero(self) -> Self::Vector {
        self.splat(0)
    }

    /// Reads [`BYTES`](Self::BYTES) bytes.
    ///
    /// # Safety
    ///
    /// * `from` is valid for reads of that many bytes. It need not be aligned.
    unsafe fn load(self, from: *const u8) -> Self::Vector;

    /// Writes [`BYTES`](Self::BYTES) bytes.
    ///
    /// # Safety
    ///
    /// * `to` is valid for writes of that many bytes. It need not be aligned.
    unsafe fn store(self, to: *mut u8, vector: Self::Vector);

    /// Prefetches the cache line at `address`, which may be any address.
    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        crate::prefetch::line(address);
    }

    /// `a ^ b`.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a ^ b ^ c`.
    #[inline(always)]
    fn xor3(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        self.xor(self.xor(a, b), c)
    }

    /// All ones if the lowest bit of `bit` is set, else all zeroes.
    fn mask(self, bit: u64) -> Self::Mask;

    /// `a ^ b` if `mask` is set, else `a`, without a branch.
    fn xor_masked(self, a: Self::Vector, b: Self::Vector, mask: Self::Mask) -> Self::Vector;

    /// The same byte in every lane.
    fn splat(self, byte: u8) -> Self::Vector;

    /// Lane-wise `a + b` of bytes, wrapping.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Lane-wise `a * 8` of bytes, wrapping.
    fn times8(self, a: Self::Vector) -> Self::Vector;

    /// Lane-wise rotation of bytes to the left by three bits.
    fn rotate_left_3(self, a: Self::Vector) -> Self::Vector;

    /// Bit `i` is set if byte lane `i` is not zero.
    fn nonzero(self, a: Self::Vector) -> u64;
}

/// An algorithm that runs on any instruction set. Implementations of [`run`](Self::run) must be `#[inline(always)]`.
pub trait Kernel {
    /// The result type.
    type Output;
    /// Computes it with the instructions of `simd`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares every operation on `a`, `b` and `c` with the result for single bytes.
    struct Check<'a> {
        a: &'a [u8; 64],
        b: &'a [u8; 64],
        c: &'a [u8; 64],
    }

    impl Kernel for Check<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let Self { a, b, c } = self;
            for at in (0..64).step_by(S::BYTES) {
                // SAFETY: `at + S::BYTES <= 64` because BYTES divides 64.
                let [va, vb, vc] = [a, b, c].map(|bytes| unsafe { simd.load(bytes.as_ptr().add(at)) });
                let expect = |result: S::Vector, name: &str, f: &dyn Fn(u8, u8, u8) -> u8| {
                    let mut bytes = [0; 64];
                    // SAFETY: `bytes` is at least one vector long.
                    unsafe { simd.store(bytes.as_mut_ptr(), result) };
                    for (lane, byte) in bytes[..S::BYTES].iter().enumerate() {
                        let i = at + lane;
                        assert_eq!(*byte, f(a[i], b[i], c[i]), "{name}, lane {lane}");
                    }
                };
                expect(simd.zero(), "zero", &|_, _, _| 0);
                expect(simd.splat(a[0]), "splat", &|_, _, _| a[0]);
                expect(simd.xor(va, vb), "xor", &|a, b, _| a ^ b);
                expect(simd.xor3(va, vb, vc), "xor3", &|a, b, c| a ^ b ^ c);
                expect(simd.xor_masked(va, vb, simd.mask(3)), "xor_masked 1", &|a, b, _| a ^ b);
                expect(simd.xor_masked(va, vb, simd.mask(2)), "xor_masked 0", &|a, _, _| a);
                expect(simd.add(va, vb), "add", &|a, b, _| a.wrapping_add(b));
                expect(simd.times8(va), "times8", &|a, _, _| a.wrapping_mul(8));
                expect(simd.rotate_left_3(va), "rotate_left_3", &|a, _, _| a.rotate_left(3));
                let nonzero = simd.nonzero(va);
                for lane in 0..64 {
                    let expected = lane < S::BYTES && a[at + lane] != 0;
                    assert_eq!(nonzero >> lane & 1 == 1, expected, "nonzero, lane {lane}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn instruction_sets_agree_with_single_bytes(
            mut a in prop::array::uniform32(any::<u8>()).prop_flat_map(|x| (Just(x), prop::array::uniform32(0_u8..3)))
                .prop_map(|(x, y)| { let mut a = [0; 64]; a[..32].copy_from_slice(&x); a[32..].copy_from_slice(&y); a }),
            b in prop::array::uniform32(any::<u8>()),
        ) {
            let mut wide = [0; 64];
            wide[..32].copy_from_slice(&b);
            wide[32..].copy_from_slice(&b.map(|x| x.wrapping_mul(251)));
            let mut c = wide;
            c.reverse();
            for isa in Isa::available() {
                isa.run(Check { a: &a, b: &wide, c: &c });
            }
            a.reverse();
            for isa in Isa::available() {
                isa.run(Check { a: &a, b: &wide, c: &c });
            }
        }
    }

    #[test]
    fn auto_is_the_widest_and_available_paths_can_be_forced() {
        let available = Isa::available();
        assert_eq!(Isa::select(Path::Auto).unwrap().name(), available.last().unwrap().name());
        for (name, path) in Path::CHOICES.into_iter().skip(1) {
            match Isa::select(path) {
                Ok(isa) => assert_eq!(isa.name(), name),
                Err(error) => {
                    assert!(available.iter().all(|isa| isa.name() != name));
                    assert!(
                        error
                            .to_string()
                            .starts_with(&format!("this CPU does not support {name}; supported are portable"))
                    );
                }
            }
        }
    }
}
