//! System V shared memory, semaphores and queues, which outlive the processes that make them: an answer for a later trial, or memory of the
//! container's that no later trial has.

use std::collections::BTreeSet;

use crate::host::Host;

/// What the kernel calls them.
const KINDS: [&str; 3] = ["shm", "sem", "msg"];

/// Those that are there, by kind and number.
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

    /// Removes what was not there before; returns what cannot be removed.
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
