//! Rate of additions or multiply-adds of 32-bit floats on one thread, with the widest vectors of the CPU.

use super::Limit;
use super::together::average;
use crate::{Quantity, Unit};

/// Performs at least the given number of operations; the return value depends on the result and prevents dead-code
/// elimination.
type Way = fn(usize) -> f32;

/// Fused multiply-adds per second in registers, counted per lane, with enough in flight to fill the pipeline; `None` if
/// the CPU has no vector version.
#[must_use]
pub fn arithmetic_rate() -> Option<Limit> {
    /// Operations per pass; some tens of microseconds.
    const OPERATIONS: usize = 1 << 22;
    const PASSES: usize = 64;
    let (instructions, way) = widest()?;
    let seconds = average(PASSES, 1, |_| {
        std::hint::black_box(way(OPERATIONS));
    });
    let rate = Quantity::new(OPERATIONS as f64 / seconds, Unit::new("operations/s"));
    Some(Limit::new(rate, instructions, 1))
}

#[cfg(target_arch = "x86_64")]
fn widest() -> Option<(&'static str, Way)> {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature was just detected.
        return Some(("avx512f", |operations| unsafe { x86::sixteen_lanes(operations) }));
    }
    // SAFETY: both features are detected before the function is returned.
    let way: Way = |operations| unsafe { x86::eight_lanes(operations) };
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(("avx2,fma", way))
}

#[cfg(target_arch = "aarch64")]
fn widest() -> Option<(&'static str, Way)> {
    // SAFETY: the feature is detected before the function is returned.
    let way: Way = |operations| unsafe { arm::four_lanes(operations) };
    std::arch::is_aarch64_feature_detected!("neon").then_some(("neon", way))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn widest() -> Option<(&'static str, Way)> {
    None
}

/// Vectors in flight, more than two units times a latency of four or five.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const IN_FLIGHT: usize = 12;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::IN_FLIGHT;

    #[target_feature(enable = "avx512f")]
    pub(super) fn sixteen_lanes(operations: usize) -> f32 {
        let (factor, addend) = (black_box(_mm512_set1_ps(0.5)), black_box(_mm512_set1_ps(1.0)));
        let mut state = [addend; IN_FLIGHT];
        for _ in 0..operations.div_ceil(16 * IN_FLIGHT) {
            state = state.map(|vector| _mm512_fmadd_ps(vector, factor, addend));
        }
        _mm512_reduce_add_ps(state.into_iter().fold(addend, |sum, vector| _mm512_add_ps(sum, vector)))
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn eight_lanes(operations: usize) -> f32 {
        let (factor, addend) = (black_box(_mm256_set1_ps(0.5)), black_box(_mm256_set1_ps(1.0)));
        let mut state = [addend; IN_FLIGHT];
        for _ in 0..operations.div_ceil(8 * IN_FLIGHT) {
            state = state.map(|vector| _mm256_fmadd_ps(vector, factor, addend));
        }
        _mm256_cvtss_f32(state.into_iter().fold(addend, |sum, vector| _mm256_add_ps(sum, vector)))
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;
    use std::hint::black_box;

    use super::IN_FLIGHT;

    #[target_feature(enable = "neon")]
    pub(super) fn four_lanes(operations: usize) -> f32 {
        let (factor, addend) = (black_box(vdupq_n_f32(0.5)), black_box(vdupq_n_f32(1.0)));
        let mut state = [addend; 2 * IN_FLIGHT];
        for _ in 0..operations.div_ceil(4 * 2 * IN_FLIGHT) {
            state = state.map(|vector| vfmaq_f32(addend, vector, factor));
        }
        vaddvq_f32(state.into_iter().fold(addend, |sum, vector| vaddq_f32(sum, vector)))
    }
}

#[cfg(test)]
mod tests {
    use super::{arithmetic_rate, widest};

    #[test]
    fn every_available_implementation_has_a_rate_and_computes_correctly() {
        assert_eq!(
            arithmetic_rate().and_then(|limit| limit.instructions),
            widest().map(|(instructions, _)| instructions)
        );
        assert!(arithmetic_rate().is_none_or(|limit| limit.value > 1e7));
        // Repeated x/2 + 1 converges to two in every lane. One is added for the initial values of the vectors in
        // flight.
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: both features were just detected.
            assert_eq!(unsafe { super::x86::eight_lanes(1 << 20) }, 1.0 + 2.0 * super::IN_FLIGHT as f32);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just detected.
            let sum = unsafe { super::x86::sixteen_lanes(1 << 20) };
            assert_eq!(sum, 16.0 * (1.0 + 2.0 * super::IN_FLIGHT as f32));
        }
    }
}
