//! Several threads that do the same at the same time: a limit of two threads is not twice that of one.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Stopwatch;

/// Seconds of the fastest of some passes, from when all threads begin until the last has ended. `work` is told which thread it is.
///
/// The threads are started once and wait for each other without sleeping: starting or waking one takes as long as some probes.
///
/// # Panics
///
/// When there is nobody to work, or nothing to do.
#[must_use]
pub fn fastest(passes: usize, threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    assert!(passes > 0 && threads > 0, "a probe needs a pass and a thread");
    let arrived = AtomicUsize::new(0);
    // The `gate`-th time that all have to arrive before any goes on.
    let meet = |gate: usize| {
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < threads * gate {
            std::thread::yield_now();
        }
    };
    let pass = |thread: usize, pass: usize| {
        meet(2 * pass + 1);
        let watch = Stopwatch::start();
        work(thread);
        meet(2 * pass + 2);
        watch.seconds()
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let pass = &pass;
            scope.spawn(move || {
                for i in 0..passes {
                    pass(thread, i);
                }
            });
        }
        (0..passes).map(|i| pass(0, i)).fold(f64::INFINITY, f64::min)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::fastest;

    #[test]
    fn every_thread_works_in_every_pass_and_no_pass_begins_before_the_last_has_ended() {
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let seconds = fastest(7, 3, |_| {
            let before = begun.fetch_add(1, Ordering::SeqCst);
            assert!(ended.load(Ordering::SeqCst) >= before / 3 * 3, "pass {} has begun", before / 3);
            ended.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!((begun.into_inner(), ended.into_inner()), (21, 21));
        assert!(seconds.is_finite());
    }
}
