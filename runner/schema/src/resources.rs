//! Resource usage of a process, as reported by the kernel at its exit.

use crate::check::{self, Check, Violation};
use crate::read::records;

records! {
    /// Resource usage of the process itself, from `wait4`.
    #[derive(Default)]
    pub struct Resources {
        /// CPU time in user mode.
        pub user_seconds: Option<f64>,
        /// CPU time in the kernel.
        pub system_seconds: Option<f64>,
        /// Peak resident memory.
        pub max_rss_bytes: Option<u64>,
        /// Page faults served without I/O.
        pub minor_faults: Option<u64>,
        /// Page faults that needed I/O.
        pub major_faults: Option<u64>,
        /// Voluntary context switches.
        pub voluntary_context_switches: Option<u64>,
        /// Involuntary context switches.
        pub involuntary_context_switches: Option<u64>,
        /// Instructions of the process and its children in user mode.
        pub instructions: Option<u64>,
        /// CPU cycles in user mode.
        pub cycles: Option<u64>,
        /// Misses of the last-level cache in user mode.
        pub cache_misses: Option<u64>,
        /// Mispredicted branches in user mode.
        pub branch_misses: Option<u64>,
        /// Energy of all processor packages during the process, with that of other programs.
        pub package_joules: Option<f64>,
    }
}

impl Check for Resources {
    fn check(&self) -> Result<(), Violation> {
        check::not_negative("userSeconds", self.user_seconds.unwrap_or(0.0))?;
        check::not_negative("systemSeconds", self.system_seconds.unwrap_or(0.0))?;
        check::not_negative("packageJoules", self.package_joules.unwrap_or(0.0))
    }
}
