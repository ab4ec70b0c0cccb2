//! Asking for memory before it is needed.

/// A prefetch of one cache line, with the hint that names the cache on each architecture.
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
    /// Asks for the cache line at `address`, which may be any address.
    line, _MM_HINT_T0, "prfm pldl1keep, [{}]"
);
prefetch!(
    /// Asks for the cache line at `address`, which may be any address, and leaves the first-level cache to what is in use.
    line_into_second_level, _MM_HINT_T1, "prfm pldl2keep, [{}]"
);
