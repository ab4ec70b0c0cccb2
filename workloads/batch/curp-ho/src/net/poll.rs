//! epoll and timerfd.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use serde::{Deserialize, Serialize};

/// Behaviour of an idle thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Idle {
    /// Sleep until the kernel wakes it.
    #[default]
    Sleep,
    /// Yield the CPU to other threads first, and sleep if there is still nothing to do. A sender that runs meanwhile
    /// does not need to wake it. A wake-up across CPUs is an interrupt, and more expensive in a virtual machine.
    Yield,
}

assay_harness::choices!(Idle { "sleep" => Sleep, "yield" => Yield });

/// A ready descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The token it was added with.
    pub token: u64,
    /// There is something to read, or the other end is gone.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
}

/// Event flags of all descriptors.
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

/// Waits for many descriptors at once.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: Vec<Ready>,
    /// Behaviour of the thread if nothing is ready.
    pub idle: Idle,
    /// How often it has waited.
    pub waits: u64,
}

impl Poll {
    /// Waits for nothing yet.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; 64];
        Ok(Self { epoll, events, ready: Vec::new(), idle: Idle::Sleep, waits: 0 })
    }

    /// Adds a descriptor; it is reported while it is readable.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn add(&self, fd: &impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), READABLE)?)
    }

    /// Whether a descriptor is to be reported while it is writable, too.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn writable(&self, fd: &impl AsFd, token: u64, wanted: bool) -> io::Result<()> {
        let events = if wanted { READABLE | EventFlags::OUT } else { READABLE };
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), events)?)
    }

    /// Waits for readiness, at most `milliseconds`; -1 waits without a timeout.
    ///
    /// # Errors
    ///
    /// If the system call fails. An interruption is not an error and returns no descriptors.
    pub fn wait(&mut self, milliseconds: i32) -> io::Result<&[Ready]> {
        // Counted once per wait, regardless of the number of system calls.
        self.waits += 1;
        let mut count = 0;
        if self.idle == Idle::Yield && milliseconds != 0 {
            count = self.look(0)?;
            if count == 0 {
                std::thread::yield_now();
            }
        }
        if count == 0 {
            count = self.look(milliseconds)?;
        }
        self.ready.clear();
        self.ready.extend(self.events[..count].iter().map(|event| {
            let has = |flags: i32| event.events & flags.cast_unsigned() != 0;
            Ready {
                token: event.u64,
                readable: has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
                writable: has(libc::EPOLLOUT),
            }
        }));
        Ok(&self.ready)
    }

    /// Number of ready descriptors, now or within `milliseconds`.
    fn look(&mut self, milliseconds: i32) -> io::Result<usize> {
        let (events, room) = (self.events.as_mut_ptr(), self.events.len() as i32);
        // SAFETY: `events` has room for as many as are asked for.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events, room, milliseconds) };
        usize::try_from(count).or_else(|_| {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
        })
    }
}

/// Waits until a descriptor can be written to, and reports whether that was within `patience`.
#[must_use]
pub fn writable_within(fd: &impl AsRawFd, patience: Duration) -> bool {
    let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    let mut wanted = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: the pointer refers to one local structure, and the count is one.
    unsafe { libc::poll(&raw mut wanted, 1, milliseconds) > 0 }
}

/// A timer with nanosecond precision that is ready like a descriptor.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    armed: Option<u64>,
}

impl Timer {
    /// A timer that is not set.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { fd, armed: None })
    }

    /// Sets the timer to a time of [`now`](super::now), or disables it. Setting an unchanged value costs no system
    /// call.
    ///
    /// # Errors
    ///
    /// If the system call fails.
    pub fn set(&mut self, at: Option<u64>) -> io::Result<()> {
        if self.armed == at {
            return Ok(());
        }
        // All zeros disarms, so a deadline at the clock's very beginning is put one nanosecond later.
        let nanoseconds = at.map_or(0, |at| at.max(1));
        let value = libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000).cast_signed(),
            tv_nsec: (nanoseconds % 1_000_000_000).cast_signed(),
        };
        let spec = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let fd = self.fd.as_raw_fd();
        // SAFETY: `spec` outlives the call, and a null pointer says that the old value is not wanted.
        match unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const spec, std::ptr::null_mut()) } {
            0 => {
                self.armed = at;
                Ok(())
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes note that it was ready.
    pub fn fired(&mut self) {
        let mut count = 0_u64;
        // SAFETY: a timer's read writes eight bytes, which `count` has. Nothing to read is no harm: it does not block.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        self.armed = None;
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::now;

    #[test]
    fn a_timer_is_ready_at_its_time_and_not_before() {
        Idle::CHOICES.into_iter().for_each(|(_, idle)| is_ready_at_its_time(idle));
    }

    fn is_ready_at_its_time(idle: Idle) {
        let (mut poll, mut timer) = (Poll::new().unwrap(), Timer::new().unwrap());
        poll.idle = idle;
        poll.add(&timer, 7).unwrap();
        assert_eq!(poll.wait(0).unwrap(), []);
        let at = now() + 2_000_000;
        timer.set(Some(at)).unwrap();
        assert_eq!(poll.wait(10_000).unwrap(), [Ready { token: 7, readable: true, writable: false }]);
        assert!(now() >= at);
        timer.fired();
        assert_eq!(poll.wait(0).unwrap(), []);
        timer.set(Some(1)).unwrap();
        assert_eq!(poll.wait(10_000).unwrap().len(), 1, "a time in the past is due at once");
        timer.fired();
        timer.set(Some(now() + 60_000_000_000)).unwrap();
        timer.set(None).unwrap();
        assert_eq!(poll.wait(0).unwrap(), []);
        assert_eq!(poll.waits, 5, "a wait is one, however often it looks");
    }
}
