//! Several threads that do the same at the same time: a limit of two threads is not twice that of one.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Stopwatch;

/// Seconds of a pass on average over some, from when all threads begin until the last has ended. One more, the first, is not counted.
/// `work` is told which thread it is.
///
/// The threads are started once and wait for each other without sleeping: starting or waking one takes as long as some probes.
///
/// # Panics
///
/// When there is nobody to work, or nothing to do.
#[must_use]
pub fn average(passes: usize, threads: usize, work: impl Fn(usize) + Sync) -> f64 {
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
    fn every_thread_works_in_every_pass_and_no_pass_begins_before_the_last_has_ended() {
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
    fn a_slow_pass_counts_and_a_slow_first_does_not() {
        let pass = AtomicUsize::new(0);
        let seconds = average(4, 1, |_| {
            let slow = [400, 40].get(pass.fetch_add(1, Ordering::SeqCst));
            std::thread::sleep(std::time::Duration::from_millis(*slow.unwrap_or(&0)));
        });
        assert!((0.01..0.1).contains(&seconds), "{seconds}");
    }
}
