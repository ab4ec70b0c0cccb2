//! Events by which the kernel ends or restricts processes of a trial.

use std::collections::BTreeMap;

use crate::check::{self, Check, Violation};
use crate::read::records;

/// MOST_DEATHS is the maximum number of deaths in an attempt.
pub const MOST_DEATHS: usize = 16;
/// LONGEST_PROCESS is the maximum length of a process's name in an attempt, in characters.
const LONGEST_PROCESS: usize = 64;

records! {
    /// Growth of the kernel's event counters over a trial, and deaths of its processes.
    #[derive(Default)]
    pub struct Kernel {
        /// Processes of the block's own cgroup that the OOM killer killed.
        pub oom_kills: Option<u64>,
        /// Processes or threads that could not start, because the cgroup's limit was reached.
        pub pid_limit_hits: Option<u64>,
        /// Allocations above the memory limit for which reclaim freed too little.
        pub oom_events: Option<u64>,
        /// Allocations that reached the memory limit.
        pub memory_limit_hits: Option<u64>,
        /// Times that processes were slowed down above memory.high.
        pub memory_high_events: Option<u64>,
        /// Allocations of huge pages that the cgroup's limit refused.
        pub hugetlb_limit_hits: Option<u64>,
        /// Processes of the whole machine that the OOM killer killed.
        pub machine_oom_kills: Option<u64>,
        /// Processes of the trial that the runner reaped and that ended abnormally.
        pub deaths: Option<Vec<Death>>,
        /// The reason for each counter that fails a trial and could not be read.
        pub unknown: Option<BTreeMap<String, String>>,
    }

    /// A process that a signal ended.
    pub struct Death {
        /// The process's name.
        pub process: Option<String>,
        /// The signal.
        pub signal: u64,
        /// Set if the kernel dumped its core.
        pub core_dumped: Option<bool>,
    }
}

impl Check for Kernel {
    fn check(&self) -> Result<(), Violation> {
        if let Some(deaths) = &self.deaths {
            check::list("deaths", deaths, 1, MOST_DEATHS)?;
        }
        let mut unknown = self.unknown.iter().flatten();
        check::count("unknown", unknown.clone().count(), 0, 16)?;
        unknown.try_for_each(|(counter, reason)| check::length(&format!("unknown.{counter}"), reason, 0, 1024))
    }
}

impl Check for Death {
    fn check(&self) -> Result<(), Violation> {
        check::length("process", self.process.as_deref().unwrap_or(""), 0, LONGEST_PROCESS)?;
        check::require((1..=64).contains(&self.signal), "signal", || format!("{} is no signal", self.signal))
    }
}
