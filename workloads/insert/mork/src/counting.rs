//! A counting allocator: the system's allocator with two counters that can be enabled.
//!
//! The program installs it. Counting is enabled only in a run that is not timed; disabled it costs a load of a constant
//! flag.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counting.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counting;

fn note(bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocations and reallocations, and the bytes they asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocations {
    /// How many.
    pub calls: u64,
    /// How many bytes in all.
    pub bytes: u64,
}

/// Counts the allocations of all threads during `work`. `None` where the program has another allocator. One count at a
/// time.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Option<Allocations>) {
    let read = || (CALLS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    ON.store(true, Ordering::Relaxed);
    // An allocation shows whether counting is enabled.
    let before = read();
    drop(std::hint::black_box(Box::new(0_u8)));
    let start = read();
    let output = work();
    let end = read();
    ON.store(false, Ordering::Relaxed);
    let installed = start.0 > before.0;
    (output, installed.then(|| Allocations { calls: end.0 - start.0, bytes: end.1 - start.1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_allocator_there_is_no_count() {
        let (output, allocations) = count(|| vec![1, 2, 3].len());
        assert_eq!((output, allocations), (3, None));
    }
}
