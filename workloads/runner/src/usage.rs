//! What processes used, as the kernel accounts for it.

use std::io;
use std::mem::MaybeUninit;

use assay_schema::attempt::Resources;

/// A process that has ended and been reaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    status: libc::c_int,
    pub(crate) usage: Usage,
}

/// One `rusage`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// What of the peak is the runner's: the pages that a child has been forked with. Absent if that is not known.
    floor: Option<u64>,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    max_rss_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// What there is to reap.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reap {
    /// This child has ended and is gone now.
    Done(Reaped),
    /// There are children, all of them still running.
    Running,
    /// There are no children.
    None,
}

/// Reaps one child that has ended, without waiting.
pub(crate) fn reap() -> io::Result<Reap> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live, writable memory of the types that wait4 fills.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        0 => Ok(Reap::Running),
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Reap::None),
            error => Err(error),
        },
        // SAFETY: wait4 returned a process, so it has filled usage; all zeroes is a valid rusage in any case.
        pid => Ok(Reap::Done(Reaped { pid, status, usage: Usage::from(unsafe { usage.assume_init() }) })),
    }
}

/// Reaps one child without waiting; nothing if it still runs or is no child.
pub(crate) fn reap_process(child: rustix::process::Pid) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let number = child.as_raw_nonzero().get();
    // SAFETY: both pointers are to live, writable memory of the types that wait4 fills.
    let pid = unsafe { libc::wait4(number, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        0 => Ok(None),
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
            error => Err(error),
        },
        // SAFETY: wait4 returned a process, so it has filled usage; all zeroes is a valid rusage in any case.
        pid => Ok(Some(Reaped { pid, status, usage: Usage::from(unsafe { usage.assume_init() }) })),
    }
}

/// CPU seconds used so far by this process and by all the children it has reaped.
pub(crate) fn cpu_seconds_so_far() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|who| {
            let mut usage = MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: the pointer is to live, writable memory of the type that getrusage fills.
            unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
            // SAFETY: all zeroes is a valid rusage, and getrusage writes nothing but a valid one.
            let usage = Usage::from(unsafe { usage.assume_init() });
            usage.user_seconds + usage.system_seconds
        })
        .sum()
}

/// Gives memory that is free in this process back to the kernel.
pub(crate) fn release_free_memory() {
    // SAFETY: malloc_trim has no preconditions.
    unsafe { libc::malloc_trim(0) };
}

/// Peak memory of this process so far, in bytes. Safe to call between fork and exec: it makes one system call.
pub(crate) fn own_peak_memory() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the type that getrusage fills.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid rusage, and getrusage writes nothing but a valid one.
    Usage::from(unsafe { usage.assume_init() }).max_rss_bytes
}

/// By how much two readings of one process's memory can differ without a reason, in bytes: each CPU counts up to a batch of pages for
/// itself, of anonymous memory and of files (Linux, `lib/percpu_counter.c`; 64 pages per thread before 6.2).
fn counter_error() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let read = |name| u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0);
    2 * (2 * read(libc::_SC_NPROCESSORS_CONF)).max(64) * read(libc::_SC_PAGESIZE)
}

impl Reaped {
    pub(crate) fn above(self, floor: Option<u64>) -> Self {
        Self { usage: self.usage.above(floor), ..self }
    }

    pub(crate) fn exit(&self) -> Exit {
        if libc::WIFSIGNALED(self.status) {
            Exit::Signal(libc::WTERMSIG(self.status))
        } else {
            Exit::Code(libc::WEXITSTATUS(self.status))
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        Self {
            floor: None,
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            max_rss_bytes: count(usage.ru_maxrss) * 1024,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

impl Usage {
    /// The same of a child that had so much memory when it executed its program.
    pub(crate) fn above(self, floor: Option<u64>) -> Self {
        Self { floor, ..self }
    }

    /// At most so much was resident.
    pub(crate) fn resident(&self) -> u64 {
        self.max_rss_bytes
    }

    /// The record. A peak up to what the child was forked with says nothing about its program.
    pub(crate) fn resources(&self) -> Resources {
        let seen = self.floor.is_some_and(|floor| self.max_rss_bytes > floor + counter_error());
        Resources {
            user_seconds: Some(self.user_seconds),
            system_seconds: Some(self.system_seconds),
            max_rss_bytes: seen.then_some(self.max_rss_bytes),
            minor_faults: Some(self.minor_faults),
            major_faults: Some(self.major_faults),
            voluntary_context_switches: Some(self.voluntary_switches),
            involuntary_context_switches: Some(self.involuntary_switches),
        }
    }
}

/// The name of a signal, for messages.
pub(crate) fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGHUP => "SIGHUP",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        _ => "see signal(7)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_recorded_where_it_is_certainly_the_programs() {
        // SAFETY: all zeroes is a valid rusage.
        let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
        raw.ru_maxrss = 4096;
        let (usage, bytes) = (Usage::from(raw), 4096 * 1024);
        let peak = |floor| usage.above(floor).resources().max_rss_bytes;
        assert_eq!(peak(Some(bytes - counter_error() - 1)), Some(bytes));
        assert_eq!(peak(Some(bytes - counter_error())), None, "two readings can differ by so much");
        assert_eq!(peak(Some(bytes)), None);
        assert_eq!(peak(None), None, "nobody knows what the child was forked with");
        assert_eq!(usage.above(None).resident(), bytes);
    }
}
