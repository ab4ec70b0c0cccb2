//! Concurrent threads with the same work. A limit of two threads is not twice that of one.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Stopwatch;

/// Average seconds per pass, from the common start of all threads until the last has finished. The first pass is a
/// warm-up and not counted. `work` gets the thread's index.
///
/// The threads are started once and synchronize by spinning, because starting or waking a thread takes as long as some
/// probes.
///
/// # Panics
///
/// If `threads` or `passes` is zero.
#[must_use]
pub fn average(passes: usize, threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    assert!(passes > 0 && threads > 0, "a probe needs a pass and a thread");
    let arrived = AtomicUsize::new(0);
    // Barrier number `gate`: waits until all threads have arrived.
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
                for i in 0..=passes {
                    pass(thread, i);
                }
            });
        }
        (0..=passes).map(|i| pass(0, i)).skip(1).sum::<f64>() / passes as f64
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::average;

    #[test]
    fn passes_run_all_threads_and_do_not_overlap() {
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let seconds = average(7, 3, |_| {
            let before = begun.fetch_add(1, Ordering::SeqCst);
            assert!(ended.load(Ordering::SeqCst) >= before / 3 * 3, "pass {} has begun", before / 3);
            ended.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!((begun.into_inner(), ended.into_inner()), (24, 24));
        assert!(seconds.is_finite());
    }

    #[test]
    fn first_pass_is_not_counted() {
        let pass = AtomicUsize::new(0);
        let seconds = average(4, 1, |_| {
            let slow = [400, 40].get(pass.fetch_add(1, Ordering::SeqCst));
            std::thread::sleep(std::time::Duration::from_millis(*slow.unwrap_or(&0)));
        });
        assert!((0.01..0.1).contains(&seconds), "{seconds}");
    }
}
