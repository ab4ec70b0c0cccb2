//! A nanosecond clock shared by all processes of the machine, and a process's resource usage.

use std::mem::MaybeUninit;

use crate::replica::Usage;

/// Nanoseconds of the monotonic clock, which is one for the whole machine.
#[must_use]
pub fn now() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a timespec of our own, which a successful call fills; this clock exists on every Linux.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Sleeps until a time of [`now`]. The thread is woken as exactly as the kernel can, not within the 50 µs that it allows itself otherwise.
pub fn sleep_until(at: u64) {
    let time =
        libc::timespec { tv_sec: (at / 1_000_000_000).cast_signed(), tv_nsec: (at % 1_000_000_000).cast_signed() };
    // SAFETY: `time` outlives the call, and a null pointer says that the rest of an interrupted sleep is not wanted.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

/// `usage` with this process's CPU time, sleeps and peak memory filled in.
#[must_use]
pub fn usage(usage: Usage) -> Usage {
    // SAFETY: all zeros is a valid rusage, and the call only writes into it.
    let used = unsafe {
        let mut used = MaybeUninit::<libc::rusage>::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr());
        used.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let (user_seconds, system_seconds) = (seconds(used.ru_utime), seconds(used.ru_stime));
    let (sleeps, peak_memory) = (used.ru_nvcsw.unsigned_abs(), used.ru_maxrss.unsigned_abs() * 1024);
    Usage { user_seconds, system_seconds, sleeps, peak_memory, ..usage }
}
