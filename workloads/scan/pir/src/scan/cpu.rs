//! How the CPU is used.

use assay_harness::prefetch::InOrder;
use assay_harness::simd::{Isa, Kernel, Simd};

/// With which instructions rows are added up, and who has those ready that are read in order.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    pub(super) isa: Isa,
    pub(super) in_order: InOrder,
}

/// Bytes of a vector, and how many registers there are for vectors.
pub(super) fn vectors(isa: Isa) -> (usize, usize) {
    struct Vectors;
    impl Kernel for Vectors {
        type Output = (usize, usize);
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> (usize, usize) {
            (S::BYTES, S::REGISTERS)
        }
    }
    isa.run(Vectors)
}
