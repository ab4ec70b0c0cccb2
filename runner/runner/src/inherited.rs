//! What every trial inherits from the runner: limits, priorities and CPUs.
//!
//! Whatever runs as the runner's user may change these of the runner too, which not being dumpable does not prevent (`prlimit(2)`,
//! `sched_setattr(2)`, `ioprio_set(2)`, `sched_setaffinity(2)`). What a trial changes is given back before another one gets it.

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

/// What the runner had before its first trial.
#[derive(Debug)]
pub(crate) struct Inherited {
    limits: [Rlimit; LIMITS.len()],
    schedule: Schedule,
    /// The priority of its input and output.
    io: libc::c_long,
    cpus: Option<CpuSet>,
}

impl Inherited {
    pub(crate) fn read() -> Self {
        Self { limits: LIMITS.map(getrlimit), schedule: Schedule::read(), io: io_priority(), cpus: CpuSet::allowed() }
    }

    /// Gives everything back but the CPUs. Fails where the kernel lets nobody give it back, such as a limit that nobody may exceed.
    pub(crate) fn restore(&self) -> Result<()> {
        for (limit, was) in LIMITS.into_iter().zip(self.limits) {
            if getrlimit(limit) != was {
                // What comes of it is seen below.
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
        left.extend((now.io != self.io).then(|| "priority of input and output".to_owned()));
        ensure!(
            left.is_empty(),
            "what every trial inherits from the runner changed during this one, and cannot be given back: {}",
            left.join(", ")
        );
        Ok(())
    }

    /// Gives the CPUs back. Where the kernel has taken them away meanwhile they are those that are left.
    pub(crate) fn restore_cpus(&self) {
        if let Some(cpus) = self.cpus.as_ref().filter(|cpus| CpuSet::allowed().as_ref() != Some(cpus)) {
            let _ = rustix::thread::sched_setaffinity(None, &cpus.mask());
        }
    }
}

/// The kernel's `struct sched_attr`; all zeroes where it does not say.
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

/// Says that the bounds of the clock are to be set too.
const BOUNDS_OF_THE_CLOCK: u64 = 0x20 | 0x40;

impl Schedule {
    fn read() -> Self {
        let mut read = Self::default();
        // SAFETY: the kernel writes no more than it is told that there is room for, and any bits are a value.
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
        // SAFETY: the kernel reads as much as the structure says of its size, and keeps nothing of it.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const to, 0) };
    }
}

/// `IOPRIO_WHO_PROCESS`, which 0 makes this one.
const PROCESS: libc::c_int = 1;

/// The class is in the bits from this one on; where it is none the others say nothing.
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
