//! Protects this process from other processes of the same user.
//!
//! Trials run with the runner's user id. They cannot trace a process that is not dumpable, and its `/proc/PID/mem`,
//! `fd`, `environ` and the like are owned by root (`ptrace(2)`, `proc(5)`). They can still kill it, which the keeper
//! detects. Root is not restricted.

use anyhow::{Context, Result};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Makes this process not dumpable. Child processes inherit this until exec.
pub(crate) fn hide() -> Result<()> {
    // SAFETY: close_range only sets a flag on open descriptors, none of which is meant for trials. Kernels without the
    // call leave them unchanged.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("cannot hide the runner from its trials")
}
