//! Memory prefetching.

/// Defines a prefetch of one cache line, with each architecture's hint for the cache level.
macro_rules! prefetch {
    ($(#[$doc:meta])* $name:ident, $x86:ident, $arm:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<T>(address: *const T) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch may be given any address and never faults; SSE is part of the architecture.
            unsafe {
                use std::arch::x86_64::{$x86, _mm_prefetch};
                _mm_prefetch::<$x86>(address.cast());
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: a prefetch may be given any address and never faults.
            unsafe {
                std::arch::asm!($arm, in(reg) address, options(nostack, preserves_flags, readonly));
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            let _ = address;
        }
    };
}

prefetch!(
    /// Prefetches the cache line at `address`, which may be any address.
    line, _MM_HINT_T0, "prfm pldl1keep, [{}]"
);
prefetch!(
    /// Prefetches the cache line at `address`, which may be any address, into the second-level cache only.
    line_into_second_level, _MM_HINT_T1, "prfm pldl2keep, [{}]"
);

/// Prefetcher for memory that is read once and in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InOrder {
    /// The faster one on this CPU.
    Auto,
    /// Software prefetching.
    Software,
    /// The CPU's own prefetchers.
    Hardware,
}

crate::choices!(InOrder {
    "auto" => Auto,
    "software" => Software,
    "hardware" => Hardware,
});

impl InOrder {
    /// Resolves `Auto`. On AMD's Zen 4 software prefetches disturb the CPU's own prefetchers: 64 MiB of rows took 2.1
    /// ms instead of 1.7. On Intel's Xeon of 2023 rows with software prefetches are read at the speed of the bandwidth
    /// probe.
    #[must_use]
    pub fn selected(self) -> Self {
        match self {
            Self::Auto if is_amd_with_avx512() => Self::Hardware,
            Self::Auto => Self::Software,
            given => given,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn is_amd_with_avx512() -> bool {
    // Checked first and only in this case, because Miri has no AVX-512 and does not support the CPU vendor query.
    is_x86_feature_detected!("avx512f") && {
        let vendor = std::arch::x86_64::__cpuid(0);
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_amd_with_avx512() -> bool {
    false
}

/// Bytes per cache line.
const LINE: usize = 64;

/// Prefetches every cache line of `memory`, including a partial first and last one.
#[inline(always)]
pub fn lines<T>(memory: &[T]) {
    let bytes = memory.as_ptr().cast::<u8>();
    for offset in offsets(bytes.addr(), size_of_val(memory)) {
        line(bytes.wrapping_add(offset));
    }
}

/// Offsets from `start` of one byte per cache line in the next `length` bytes.
#[inline(always)]
fn offsets(start: usize, length: usize) -> impl Iterator<Item = usize> {
    let first = (length > 0).then_some(0);
    first.into_iter().chain((LINE - start % LINE..length).step_by(LINE))
}

#[cfg(test)]
mod tests {
    use super::{InOrder, LINE, offsets};

    #[test]
    fn auto_is_resolved_and_other_choices_are_unchanged() {
        assert_ne!(InOrder::Auto.selected(), InOrder::Auto);
        for given in [InOrder::Software, InOrder::Hardware] {
            assert_eq!(given.selected(), given);
        }
    }

    #[test]
    fn every_line_is_prefetched_once_for_any_alignment() {
        for start in 1000..1000 + 2 * LINE {
            for length in 0..4 * LINE {
                let asked: Vec<_> = offsets(start, length).map(|offset| (start + offset) / LINE).collect();
                let mut held: Vec<_> = (start..start + length).map(|byte| byte / LINE).collect();
                held.dedup();
                assert_eq!(asked, held, "{length} bytes from {start}");
            }
        }
    }
}
