//! How the CPU is used.

use assay_harness::prefetch::InOrder;
use assay_harness::simd::Isa;

/// With which instructions rows are added up, and who has those ready that are read in order.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    pub(super) isa: Isa,
    pub(super) in_order: InOrder,
}
