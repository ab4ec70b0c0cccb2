//! System V shared memory, semaphores and queues, which outlive their processes. They could pass data to later trials
//! or use up the container's memory.

use std::collections::BTreeSet;

use crate::host::Host;

/// The kernel's names of the kinds.
const KINDS: [&str; 3] = ["shm", "sem", "msg"];

/// Existing objects by kind and id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segments(BTreeSet<(&'static str, libc::c_int)>);

impl Segments {
    pub(crate) fn read() -> Self {
        let of = |kind: &'static str| {
            let text = Host::real().text(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
            let number = |line: &str| Some((kind, line.split_ascii_whitespace().nth(1)?.parse().ok()?));
            text.lines().filter_map(number).collect::<Vec<_>>()
        };
        Self(KINDS.into_iter().flat_map(of).collect())
    }

    /// Removes new objects; returns the first that cannot be removed.
    pub(crate) fn sweep(&self) -> Option<String> {
        Self::read().0.difference(&self.0).for_each(|(kind, number)| remove(kind, *number));
        let (kind, number) = Self::read().0.difference(&self.0).next().copied()?;
        Some(format!("number {number} of /proc/sysvipc/{kind}"))
    }
}

fn remove(kind: &str, number: libc::c_int) {
    // SAFETY: a removal reads and writes no memory of this process.
    unsafe {
        match kind {
            "shm" => libc::shmctl(number, libc::IPC_RMID, std::ptr::null_mut()),
            "sem" => libc::semctl(number, 0, libc::IPC_RMID),
            _ => libc::msgctl(number, libc::IPC_RMID, std::ptr::null_mut()),
        }
    };
}
