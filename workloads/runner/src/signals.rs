//! Signals, made readable so that one `poll` can wait for them too.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

/// Becomes readable when a child ends or when the runner is told to stop.
pub(crate) struct Signals {
    wake: UnixStream,
    stop: Arc<AtomicUsize>,
}

impl Signals {
    /// Takes over SIGCHLD, SIGTERM, SIGINT and SIGHUP.
    pub(crate) fn register() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicUsize::new(0));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            // The flag first: whoever is woken finds it set.
            flag::register_usize(signal, Arc::clone(&stop), signal as usize)?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        pipe::register(SIGCHLD, waker)?;
        Ok(Self { wake, stop })
    }

    /// The signal by which the runner was told to stop.
    pub(crate) fn stop(&self) -> Option<i32> {
        i32::try_from(self.stop.load(Ordering::SeqCst)).ok().filter(|&signal| signal != 0)
    }

    /// Forgets the wake-ups so far, so that `poll` waits for the next one.
    pub(crate) fn clear(&self) {
        let mut buffer = [0; 64];
        while (&self.wake).read(&mut buffer).is_ok_and(|read| read > 0) {}
    }

    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
