//! The canary: a fixed pass over memory that gets slower when somebody else uses the caches or the memory.
//!
//! It stands for the workload, so it goes over as much memory as the trials of the cell were seen to use. Beyond the last-level
//! cache all memory is alike: there the pass goes over a few lines that were flushed from every cache, which costs the same
//! however much memory the trials use, and needs none of theirs. For the same number of bytes it is always the same work.

use std::hint::black_box;
use std::time::Instant;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const LINE: usize = 64;
/// Less memory than this is in a cache of the CPU's own.
const LEAST: u64 = 256 << 10;
/// More memory than this is not inside a cache that anyone could rely on.
const MOST: u64 = 256 << 20;
/// Of memory inside the last-level cache the pass goes over so much; it is more than most second-level caches hold.
const CACHED: u64 = 4 << 20;
/// Of memory beyond the last-level cache the pass goes over so much.
const FLUSHED: u64 = 2 << 20;
/// Reads of which each needs the one before.
const CHAIN: usize = 4096;
/// Passes over memory that stays in a cache, and over memory that is flushed before each, which takes longer.
const PASSES: usize = 12;
const FLUSHED_PASSES: usize = 5;

/// Which canary stands for which trials on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canaries {
    /// From here on memory counts as beyond the last-level cache.
    beyond: u64,
}

/// One kind of canary. Readings of different kinds cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Canary {
    /// The memory it stands for.
    pub(crate) bytes: u64,
    flushed: bool,
}

impl Canaries {
    pub(crate) fn new(last_level_cache: Option<u64>) -> Self {
        let cache = last_level_cache.unwrap_or(MOST).clamp(LEAST * 2, MOST);
        Self { beyond: cache.next_power_of_two() }
    }

    /// The canary for trials with so much resident memory. Sizes are rounded up, so that small differences between trials do
    /// not make their readings incomparable.
    pub(crate) fn standing_for(self, resident: u64) -> Canary {
        let bytes = resident.clamp(LEAST, MOST).next_power_of_two();
        if bytes >= self.beyond { self.memory() } else { Canary { bytes: bytes.min(CACHED), flushed: false } }
    }

    /// The canary for trials beyond the last-level cache, or of which nothing is known.
    pub(crate) fn memory(self) -> Canary {
        Canary { bytes: self.beyond, flushed: true }
    }
}

impl Canary {
    /// Seconds of one pass, the fastest of a few; nothing where there is no memory for it. Single passes of a few hundred
    /// microseconds double on a quiet machine, for whatever ran just before and for an interrupt; who shares the memory
    /// all the time slows the fastest one as well.
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

/// Memory of which every line holds the number of the next one.
struct Buffer {
    memory: *mut u64,
    bytes: usize,
}

impl Buffer {
    /// `bytes` is a power of two of at least a page. The memory is given back when dropped: held during a trial, it would be
    /// missing there.
    fn new(bytes: usize) -> Option<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }.ok()?;
        // Small pages always, or the work would depend on whether a large one was free.
        // SAFETY: the range is the mapping just made, and the advice changes no contents.
        let _ = unsafe { madvise(memory, bytes, Advice::LinuxNoHugepage) };
        let mut buffer = Self { memory: memory.cast(), bytes };
        let lines = bytes / LINE;
        let words = buffer.words_mut();
        for line in 0..lines {
            // A generator with full period: the chain visits every line before it returns, in an order no prefetcher guesses.
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

    /// Reads that wait for each other, then everything in order.
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

    /// Takes every line out of every cache, where the machine lets a program do so.
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
            // SAFETY: Linux lets programs clean and invalidate lines of their own memory, whose contents do not change.
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
    fn trials_that_use_nearly_the_same_memory_share_a_canary() {
        let canaries = Canaries::new(Some(32 * MIB));
        assert_eq!(canaries.standing_for(70 * MIB), canaries.standing_for(77 * MIB));
        assert_eq!(canaries.standing_for(3 * MIB).bytes, 4 * MIB);
        assert_ne!(canaries.standing_for(3 * MIB), canaries.standing_for(MIB));
        assert_eq!(canaries.standing_for(0).bytes, 256 << 10);
    }

    #[test]
    fn beyond_the_last_level_cache_all_memory_is_alike() {
        let canaries = Canaries::new(Some(32 * MIB));
        for resident in [17 * MIB, 32 * MIB, 40 * MIB, 9000 * MIB, u64::MAX] {
            assert_eq!(canaries.standing_for(resident), canaries.memory(), "{resident}");
        }
        assert_eq!(canaries.memory().bytes, 32 * MIB);
        assert!(!canaries.standing_for(16 * MIB).flushed);
        assert_eq!(canaries.standing_for(16 * MIB), canaries.standing_for(5 * MIB), "a part stands for the whole");
        assert_eq!(canaries.standing_for(16 * MIB).bytes, CACHED);
        // No cache is so large that nothing lies beyond it.
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
    fn every_canary_reads_something() {
        let canaries = Canaries::new(Some(32 * MIB));
        for canary in [canaries.memory(), canaries.standing_for(0), canaries.standing_for(8 * MIB)] {
            assert!(canary.read().expect("there is memory") > 0.0);
        }
    }
}
