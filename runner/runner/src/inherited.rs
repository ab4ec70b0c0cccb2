//! Process attributes that trials inherit from the runner: limits, priorities and CPU affinity.
//!
//! A trial has the runner's user id and can therefore change these attributes of the runner, even if it is not dumpable
//! (`prlimit(2)`, `sched_setattr(2)`, `ioprio_set(2)`, `sched_setaffinity(2)`). They are restored before the next
//! trial.

use anyhow::{Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cpus::CpuSet;

const LIMITS: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// The attributes before the first trial.
#[derive(Debug)]
pub(crate) struct Inherited {
    limits: [Rlimit; LIMITS.len()],
    schedule: Schedule,
    /// The I/O priority.
    io: libc::c_long,
    cpus: Option<CpuSet>,
}

impl Inherited {
    pub(crate) fn read() -> Self {
        Self { limits: LIMITS.map(getrlimit), schedule: Schedule::read(), io: io_priority(), cpus: CpuSet::allowed() }
    }

    /// Restores all attributes except the affinity. Fails if the kernel does not permit it, e.g. for a lowered hard
    /// limit.
    pub(crate) fn restore(&self) -> Result<()> {
        for (limit, was) in LIMITS.into_iter().zip(self.limits) {
            if getrlimit(limit) != was {
                // Errors are detected by the comparison below.
                let _ = setrlimit(limit, was);
            }
        }
        self.schedule.restore();
        if io_priority() != self.io {
            set_io_priority(self.io);
        }
        let now = Self::read();
        let changed = LIMITS.iter().zip(self.limits.iter().zip(now.limits));
        let mut left: Vec<String> =
            changed.filter(|(_, (was, is))| *was != is).map(|(limit, _)| format!("limit {limit:?}")).collect();
        left.extend((now.schedule != self.schedule).then(|| "priority".to_owned()));
        left.extend((now.io != self.io).then(|| "I/O priority".to_owned()));
        ensure!(
            left.is_empty(),
            "the trial changed attributes of the runner that later trials inherit, and they cannot be restored: {}",
            left.join(", ")
        );
        Ok(())
    }

    /// Restores the affinity, limited to the CPUs that are still available.
    pub(crate) fn restore_cpus(&self) {
        if let Some(cpus) = self.cpus.as_ref().filter(|cpus| CpuSet::allowed().as_ref() != Some(cpus)) {
            let _ = rustix::thread::sched_setaffinity(None, &cpus.mask());
        }
    }
}

/// The kernel's `struct sched_attr`; zero if unavailable.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Schedule {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    least_clock: u32,
    most_clock: u32,
}

/// Flag to set the utilization clamps too.
const BOUNDS_OF_THE_CLOCK: u64 = 0x20 | 0x40;

impl Schedule {
    fn read() -> Self {
        let mut read = Self::default();
        // SAFETY: the kernel writes at most the given size, and any bit pattern is a valid value.
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut read, size_of::<Self>(), 0) };
        read
    }

    fn restore(&self) {
        let now = Self::read();
        if now == *self {
            return;
        }
        let clock = (now.least_clock, now.most_clock) != (self.least_clock, self.most_clock);
        let to = Self { flags: self.flags | if clock { BOUNDS_OF_THE_CLOCK } else { 0 }, ..*self };
        // SAFETY: the kernel reads the size given in the structure and retains no reference.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const to, 0) };
    }
}

/// `IOPRIO_WHO_PROCESS`; id 0 is the calling process.
const PROCESS: libc::c_int = 1;

/// Position of the class bits; without a class the other bits have no meaning.
const CLASS: u32 = 13;

fn io_priority() -> libc::c_long {
    // SAFETY: the call takes two numbers.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, PROCESS, 0) };
    if priority >> CLASS == 0 { 0 } else { priority }
}

fn set_io_priority(priority: libc::c_long) {
    // SAFETY: the call takes three numbers.
    unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0, priority) };
}
