//! Resource usage of processes, as accounted by the kernel.

use std::io;
use std::mem::MaybeUninit;

use assay_schema::attempt::Resources;
use rustix::process::Pid;

/// A reaped process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    status: libc::c_int,
    pub(crate) usage: Usage,
}

/// Its resource usage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    counted: libc::rusage,
    /// The part of the peak inherited from the runner through fork; None if unknown.
    floor: Option<u64>,
}

/// How a process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// Result of a wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reap {
    /// This child has exited and was reaped.
    Done(Reaped),
    /// There are children, all still running.
    Running,
    /// There are no children.
    None,
}

/// Reaps an exited child, or only the given one, without blocking.
pub(crate) fn reap(child: Option<Pid>) -> io::Result<Reap> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let number = child.map_or(-1, |child| child.as_raw_nonzero().get());
    // SAFETY: both pointers are to live, writable memory of the types that wait4 fills.
    let pid = unsafe { libc::wait4(number, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        0 => Ok(Reap::Running),
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Reap::None),
            error => Err(error),
        },
        pid => {
            // SAFETY: wait4 returned a process, so it has filled usage; all zeroes is a valid rusage in any case.
            let usage = Usage { counted: unsafe { usage.assume_init() }, floor: None };
            Ok(Reap::Done(Reaped { pid, status, usage }))
        }
    }
}

/// Usage so far of this process or of all its reaped children. Async-signal-safe, because it makes a single system
/// call.
fn so_far(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: the pointer is to live, writable memory of the type that getrusage fills.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid rusage, and getrusage writes nothing but a valid one.
    unsafe { usage.assume_init() }
}

/// CPU seconds used so far by this process and all its reaped children.
pub(crate) fn cpu_seconds_so_far() -> f64 {
    let both = [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(so_far);
    both.iter().map(|usage| seconds(usage.ru_utime) + seconds(usage.ru_stime)).sum()
}

/// Returns free heap memory to the kernel.
pub(crate) fn release_free_memory() {
    // SAFETY: malloc_trim has no preconditions.
    unsafe { libc::malloc_trim(0) };
}

/// Peak memory of this process so far, in bytes. Async-signal-safe, because it makes a single system call.
pub(crate) fn own_peak_memory() -> u64 {
    count(so_far(libc::RUSAGE_SELF).ru_maxrss) * 1024
}

/// Error bound of a memory reading, in bytes. Each CPU batches its page counts, separately for anonymous and file pages
/// (Linux, `lib/percpu_counter.c`; 64 pages per thread before 6.2).
fn counter_error() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let read = |name| u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0);
    2 * (2 * read(libc::_SC_NPROCESSORS_CONF)).max(64) * read(libc::_SC_PAGESIZE)
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

impl Reaped {
    /// Sets the peak memory that a child inherited through fork.
    pub(crate) fn above(self, floor: Option<u64>) -> Self {
        Self { usage: Usage { floor, ..self.usage }, ..self }
    }

    /// Whether the kernel dumped the process's core.
    pub(crate) fn core_dumped(&self) -> bool {
        libc::WIFSIGNALED(self.status) && libc::WCOREDUMP(self.status)
    }

    pub(crate) fn exit(&self) -> Exit {
        if libc::WIFSIGNALED(self.status) {
            Exit::Signal(libc::WTERMSIG(self.status))
        } else {
            Exit::Code(libc::WEXITSTATUS(self.status))
        }
    }
}

impl Usage {
    /// Upper bound of the resident size in bytes.
    pub(crate) fn resident(&self) -> u64 {
        count(self.counted.ru_maxrss) * 1024
    }

    /// Returns the record. A peak at or below the inherited one says nothing about the program and is omitted.
    pub(crate) fn resources(&self) -> Resources {
        let seen = self.floor.is_some_and(|floor| self.resident() > floor + counter_error());
        Resources {
            user_seconds: Some(seconds(self.counted.ru_utime)),
            system_seconds: Some(seconds(self.counted.ru_stime)),
            max_rss_bytes: seen.then_some(self.resident()),
            minor_faults: Some(count(self.counted.ru_minflt)),
            major_faults: Some(count(self.counted.ru_majflt)),
            voluntary_context_switches: Some(count(self.counted.ru_nvcsw)),
            involuntary_context_switches: Some(count(self.counted.ru_nivcsw)),
            ..Resources::default()
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
    fn peak_is_recorded_only_above_the_inherited_one() {
        // SAFETY: all zeroes is a valid rusage.
        let mut counted: libc::rusage = unsafe { std::mem::zeroed() };
        counted.ru_maxrss = 4096;
        let bytes = 4096 * 1024;
        let peak = |floor| Usage { counted, floor }.resources().max_rss_bytes;
        assert_eq!(peak(Some(bytes - counter_error() - 1)), Some(bytes));
        assert_eq!(peak(Some(bytes - counter_error())), None, "two readings can differ by so much");
        assert_eq!(peak(Some(bytes)), None);
        assert_eq!(peak(None), None, "the inherited peak is unknown");
        assert_eq!(Usage { counted, floor: None }.resident(), bytes);
    }
}
