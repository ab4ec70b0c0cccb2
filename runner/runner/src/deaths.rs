//! Deaths of a trial's processes that the runner did not cause.
//!
//! The runner is a subreaper, so that it reaps every process of a trial whose parent has exited. It kills the processes
//! that a trial leaves behind, so that a death by SIGKILL counts only if the process was dead, or SIGKILL had been sent
//! to it, before the runner sent it.

use std::collections::{BTreeMap, BTreeSet};

use assay_schema::kernel::{Death, MOST_DEATHS};
use rustix::process::Pid;

use crate::processes::{self, State};
use crate::usage::{Exit, Reaped};

/// Signals by which only an error or an administrator ends a process: SIGKILL, and those whose default action is a core
/// dump, except SIGQUIT, by which some programs are stopped. Programs stop their helpers by the other signals, such as
/// SIGTERM and SIGPIPE.
const ABNORMAL: [i32; 10] = [
    libc::SIGKILL,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGABRT,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

/// Deaths during one trial.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    names: BTreeMap<i32, String>,
    /// Processes that were dead or dying before the runner sent SIGKILL.
    died: BTreeSet<i32>,
    /// Processes to which the runner has sent SIGKILL.
    killed: BTreeSet<i32>,
    found: Vec<Death>,
}

impl Deaths {
    /// Notes which descendants have died so far. It must be called before the runner sends SIGKILL to a process group, or
    /// to all descendants.
    pub(crate) fn before_kill(&mut self, group: Option<Pid>) {
        let group = group.map(|group| group.as_raw_nonzero().get());
        for process in processes::descendants() {
            match process.state {
                State::Running if group.is_none_or(|group| group == process.group) => self.killed.insert(process.pid),
                State::Dying | State::Dead if !self.killed.contains(&process.pid) => self.died.insert(process.pid),
                _ => false,
            };
            self.names.insert(process.pid, process.name);
        }
    }

    /// Whether the runner ended this reaped process.
    pub(crate) fn is_killed_by_runner(&self, ended: &Reaped) -> bool {
        ended.exit() == Exit::Signal(libc::SIGKILL) && !self.died.contains(&ended.pid)
    }

    /// Records the death of a process other than the one with the result, unless it exited or the runner killed it.
    pub(crate) fn reaped(&mut self, ended: &Reaped) {
        let Exit::Signal(signal) = ended.exit() else { return };
        let counts = ABNORMAL.contains(&signal) || ended.core_dumped();
        if !counts || self.is_killed_by_runner(ended) {
            return;
        }
        self.record(ended.pid, signal, ended.core_dumped());
    }

    /// Records the death of a service, which the runner killed if `killed` is set.
    pub(crate) fn service(&mut self, ended: &Reaped, name: &str, killed: bool) {
        let Exit::Signal(signal) = ended.exit() else { return };
        if (ABNORMAL.contains(&signal) || ended.core_dumped()) && !(killed && signal == libc::SIGKILL) {
            self.names.insert(ended.pid, name.to_owned());
            self.record(ended.pid, signal, ended.core_dumped());
        }
    }

    fn record(&mut self, pid: i32, signal: i32, core_dumped: bool) {
        if self.found.len() < MOST_DEATHS {
            self.found.push(Death {
                process: self.names.get(&pid).cloned(),
                signal: signal.unsigned_abs().into(),
                core_dumped: core_dumped.then_some(true),
            });
        }
    }

    pub(crate) fn into_found(self) -> Vec<Death> {
        self.found
    }
}
