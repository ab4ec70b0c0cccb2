//! Signals as a pollable descriptor.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Flag for a signal sent by another process of the pod, not by the runner's parent.
const FROM_BESIDE: usize = 1 << 16;

/// Becomes readable when a child exits or when the runner is asked to stop.
pub(crate) struct Signals {
    wake: UnixStream,
    stop: Arc<AtomicUsize>,
    /// How long a running trial may continue after an announced end.
    finish: Duration,
    /// When an announced end was first noticed.
    announced: Cell<Option<Instant>>,
}

impl Signals {
    /// Handles SIGCHLD, SIGTERM, SIGINT and SIGHUP. The first stop signal and its sender are recorded, because trials
    /// have the same user id and can send signals too.
    pub(crate) fn register(finish: Duration) -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicUsize::new(0));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            let stop = Arc::clone(&stop);
            let note = move |info: &libc::siginfo_t| {
                let value = signal as usize | if from_above(info) { 0 } else { FROM_BESIDE };
                let _ = stop.compare_exchange(0, value, Ordering::SeqCst, Ordering::SeqCst);
            };
            // Set the flag before the wake-up, so that a woken reader finds it set. SAFETY: the closure reads its
            // argument, calls getppid and sets an atomic, all of which is async-signal-safe.
            unsafe { signal_hook_registry::register_sigaction(signal, note)? };
            pipe::register(signal, waker.try_clone()?)?;
        }
        pipe::register(SIGCHLD, waker)?;
        Ok(Self { wake, stop, finish, announced: Cell::new(None) })
    }

    /// The signal that asked the runner to stop.
    pub(crate) fn stop(&self) -> Option<i32> {
        i32::try_from(self.stop.load(Ordering::SeqCst) & (FROM_BESIDE - 1)).ok().filter(|&signal| signal != 0)
    }

    /// The same, for a trial that runs. The kubelet announces the end of a pod, as in an eviction or a drain, with SIGTERM
    /// and a grace period. A trial that is abandoned would be a loss of its arm, so that it may finish first.
    pub(crate) fn must_stop(&self) -> Option<i32> {
        let signal = self.stop()?;
        (signal != SIGTERM || self.sent_from_beside() || self.time_to_finish() == Some(Duration::ZERO))
            .then_some(signal)
    }

    /// The remaining time for the running trial after an announced end; None without one.
    pub(crate) fn time_to_finish(&self) -> Option<Duration> {
        self.stop()?;
        let now = Instant::now();
        let announced = self.announced.get().unwrap_or(now);
        self.announced.set(Some(announced));
        Some((announced + self.finish).saturating_duration_since(now))
    }

    /// Whether that signal was sent by another process of the pod, such as a trial.
    pub(crate) fn sent_from_beside(&self) -> bool {
        self.stop.load(Ordering::SeqCst) & FROM_BESIDE != 0
    }

    /// Clears pending wake-ups, so that `poll` waits for the next one.
    pub(crate) fn clear(&self) {
        let mut buffer = [0; 64];
        while (&self.wake).read(&mut buffer).is_ok_and(|read| read > 0) {}
    }

    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Whether a signal was sent by the kernel, a process outside of this container (which has no PID here) or the runner's
/// parent. Only the kernel can set the sender for these codes.
fn from_above(info: &libc::siginfo_t) -> bool {
    match info.si_code {
        libc::SI_KERNEL => true,
        // SAFETY: with SI_USER the kernel has filled in the sender; getppid has no preconditions.
        libc::SI_USER => unsafe { info.si_pid() == 0 || info.si_pid() == libc::getppid() },
        _ => false,
    }
}
