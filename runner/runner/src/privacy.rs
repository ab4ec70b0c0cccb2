//! Keeps other processes of the same user out of this one.
//!
//! Trials run as the runner's user. A process that is not dumpable cannot be traced by them, and its `/proc/PID/mem`, `fd`, `environ` and
//! the like belong to root (`ptrace(2)`, `proc(5)`). It can still be killed, which the keeper notices. Root may do everything.

use anyhow::{Context, Result};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Hides this process from now on. What it starts is hidden until it executes another program.
pub(crate) fn hide() -> Result<()> {
    // SAFETY: close_range only marks descriptors, whichever are open; nothing that the runner was started with is for its trials. A
    // kernel that does not know it leaves them as they are.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("cannot hide the runner from its trials")
}
