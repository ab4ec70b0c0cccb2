//! The canary: a fixed pass over memory, which slows down when another process contends for caches or memory bandwidth.
//!
//! Its working set is the observed memory footprint of the cell's trials. Beyond the last-level cache the footprint
//! makes no difference. There the pass covers a few lines that are flushed from all caches first, so that its cost is
//! independent of the footprint and it uses little memory. Equal numbers of bytes mean identical work.

use std::hint::black_box;
use std::time::Instant;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const LINE: usize = 64;
/// Smaller footprints fit into a private cache.
const LEAST: u64 = 256 << 10;
/// Larger footprints exceed any usable cache.
const MOST: u64 = 256 << 20;
/// Working set of the pass for footprints within the last-level cache; larger than most second-level caches.
const CACHED: u64 = 4 << 20;
/// Working set of the pass for footprints beyond the last-level cache.
const FLUSHED: u64 = 2 << 20;
/// Length of the chain of dependent reads.
const CHAIN: usize = 4096;
/// Number of passes, for cached and for flushed memory; a flushed pass takes longer.
const PASSES: usize = 12;
const FLUSHED_PASSES: usize = 5;

/// Selects the canary for a footprint on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canaries {
    /// Footprints from this size on count as beyond the last-level cache.
    beyond: u64,
}

/// One kind of canary. Readings of different kinds are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Canary {
    /// The footprint it represents.
    pub(crate) bytes: u64,
    flushed: bool,
}

impl Canaries {
    pub(crate) fn new(last_level_cache: Option<u64>) -> Self {
        let cache = last_level_cache.unwrap_or(MOST).clamp(LEAST * 2, MOST);
        Self { beyond: cache.next_power_of_two() }
    }

    /// Returns the canary for a resident size. Sizes are rounded up, so that small differences between trials do not
    /// make their readings incomparable.
    pub(crate) fn standing_for(self, resident: u64) -> Canary {
        let bytes = resident.clamp(LEAST, MOST).next_power_of_two();
        if bytes >= self.beyond { self.memory() } else { Canary { bytes: bytes.min(CACHED), flushed: false } }
    }

    /// Returns the canary for trials beyond the last-level cache or with an unknown footprint.
    pub(crate) fn memory(self) -> Canary {
        Canary { bytes: self.beyond, flushed: true }
    }
}

impl Canary {
    /// Returns the fastest of several passes in seconds, or None if memory is unavailable. A pass takes a few hundred
    /// microseconds, and interrupts or cold caches can double it on a quiet machine. Sustained contention slows the
    /// fastest pass too.
    pub(crate) fn read(self) -> Option<f64> {
        let resident = if self.flushed { FLUSHED.min(self.bytes) } else { self.bytes };
        let buffer = Buffer::new(usize::try_from(resident).ok()?)?;
        let passes = if self.flushed { FLUSHED_PASSES } else { PASSES };
        let fastest = (0..passes).map(|_| {
            if self.flushed {
                buffer.flush();
            }
            let start = Instant::now();
            buffer.pass();
            start.elapsed().as_secs_f64()
        });
        fastest.min_by(f64::total_cmp).filter(|&seconds| seconds > 0.0)
    }
}

/// A buffer in which every line holds the index of the next one.
struct Buffer {
    memory: *mut u64,
    bytes: usize,
}

impl Buffer {
    /// `bytes` is a power of two of at least a page. The memory is unmapped on drop, because holding it during a trial
    /// would reduce the memory available to it.
    fn new(bytes: usize) -> Option<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }.ok()?;
        // Small pages only, because otherwise the work would depend on the availability of large ones. SAFETY: the
        // range is the mapping just made, and the advice changes no contents.
        let _ = unsafe { madvise(memory, bytes, Advice::LinuxNoHugepage) };
        let mut buffer = Self { memory: memory.cast(), bytes };
        let lines = bytes / LINE;
        let words = buffer.words_mut();
        for line in 0..lines {
            // A full-period generator. The chain visits every line before it repeats, in an order that prefetchers
            // cannot predict.
            let next = line.wrapping_mul(0x9E37_79B1_usize & !3 | 1).wrapping_add(0x3039) & (lines - 1);
            words[line * (LINE / size_of::<u64>())] = next as u64;
        }
        Some(buffer)
    }

    fn words(&self) -> &[u64] {
        // SAFETY: the mapping is `bytes` long, aligned to a page, initialised by the kernel, and lives as long as self.
        unsafe { std::slice::from_raw_parts(self.memory, self.bytes / size_of::<u64>()) }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and self is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.bytes / size_of::<u64>()) }
    }

    /// Dependent reads along the chain, then a sequential scan.
    fn pass(&self) {
        let words = black_box(self.words());
        let mut line = 0;
        for _ in 0..CHAIN {
            line = words[line * (LINE / size_of::<u64>())] as usize;
        }
        black_box(line);
        let mut sums = [0_u64; 16];
        for chunk in words.chunks_exact(sums.len()) {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum = sum.wrapping_add(*value);
            }
        }
        black_box(sums);
    }

    /// Flushes every line from all caches, where unprivileged code is allowed to.
    #[cfg(target_arch = "x86_64")]
    fn flush(&self) {
        use std::arch::x86_64::{__cpuid_count, _mm_clflush, _mm_mfence};
        let at_once = __cpuid_count(7, 0).ebx & (1 << 23) != 0;
        for offset in (0..self.bytes).step_by(LINE) {
            let line = self.memory.cast::<u8>().wrapping_add(offset);
            if at_once {
                // SAFETY: the CPU has clflushopt, and the line is inside the mapping; its contents do not change.
                unsafe { std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)) };
            } else {
                // SAFETY: every x86-64 CPU has clflush, and the line is inside the mapping; its contents do not change.
                unsafe { _mm_clflush(line) };
            }
        }
        // SAFETY: every x86-64 CPU has mfence.
        unsafe { _mm_mfence() };
    }

    #[cfg(target_arch = "aarch64")]
    fn flush(&self) {
        for offset in (0..self.bytes).step_by(LINE) {
            let line = self.memory.cast::<u8>().wrapping_add(offset);
            // SAFETY: Linux allows unprivileged cleaning and invalidation of a process's lines, whose
            // contents do not change.
            unsafe { std::arch::asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: a barrier touches no memory.
        unsafe { std::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn flush(&self) {}
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in new, and nothing refers to it any more.
        let _ = unsafe { munmap(self.memory.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn similar_footprints_share_a_canary() {
        let canaries = Canaries::new(Some(32 * MIB));
        assert_eq!(canaries.standing_for(70 * MIB), canaries.standing_for(77 * MIB));
        assert_eq!(canaries.standing_for(3 * MIB).bytes, 4 * MIB);
        assert_ne!(canaries.standing_for(3 * MIB), canaries.standing_for(MIB));
        assert_eq!(canaries.standing_for(0).bytes, 256 << 10);
    }

    #[test]
    fn footprints_beyond_the_last_level_cache_share_a_canary() {
        let canaries = Canaries::new(Some(32 * MIB));
        for resident in [17 * MIB, 32 * MIB, 40 * MIB, 9000 * MIB, u64::MAX] {
            assert_eq!(canaries.standing_for(resident), canaries.memory(), "{resident}");
        }
        assert_eq!(canaries.memory().bytes, 32 * MIB);
        assert!(!canaries.standing_for(16 * MIB).flushed);
        assert_eq!(canaries.standing_for(16 * MIB), canaries.standing_for(5 * MIB), "a part stands for the whole");
        assert_eq!(canaries.standing_for(16 * MIB).bytes, CACHED);
        // The limit applies even with a larger cache.
        assert_eq!(Canaries::new(Some(4096 * MIB)).memory().bytes, 256 * MIB);
        assert_eq!(Canaries::new(None).memory().bytes, 256 * MIB);
        assert!(!Canaries::new(Some(1)).standing_for(0).flushed);
    }

    #[test]
    fn the_chain_visits_every_line() {
        for bytes in [LEAST, FLUSHED, CACHED] {
            let buffer = Buffer::new(bytes as usize).expect("memory");
            let words = buffer.words();
            let (mut line, mut steps) = (0, 0);
            loop {
                line = words[line * 8] as usize;
                steps += 1;
                if line == 0 {
                    break;
                }
            }
            assert_eq!(steps, bytes as usize / LINE);
        }
    }

    #[test]
    fn every_canary_returns_a_reading() {
        let canaries = Canaries::new(Some(32 * MIB));
        for canary in [canaries.memory(), canaries.standing_for(0), canaries.standing_for(8 * MIB)] {
            assert!(canary.read().expect("there is memory") > 0.0);
        }
    }
}
