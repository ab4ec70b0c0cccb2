//! One process: how it is made, waited for, and found to have ended.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::capture::Capture;
use crate::cpus::CpuSet;
use crate::exec::Program;
use crate::signals::Signals;

/// How long killed processes may take to end; only one stuck in the kernel takes longer.
pub(crate) const SWEEP_TIME: Duration = Duration::from_secs(5);

/// A command that becomes the program; with its own exec, so the name given to it is only for show.
pub(crate) fn command(program: Program, cpus: Option<&CpuSet>) -> Command {
    let mut command = Command::new("trial");
    command.process_group(0).stdin(Stdio::null());
    let runner = rustix::process::getpid();
    let mask = cpus.map(|cpus| {
        let mut mask = rustix::thread::CpuSet::new();
        cpus.iter().for_each(|cpu| mask.set(cpu));
        mask
    });
    // SAFETY: between fork and exec the closure makes system calls only, prctl, getppid, sched_setaffinity and execve; it
    // neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            // Should the runner be killed, the trial must not go on unwatched.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(runner) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            if let Some(mask) = &mask {
                rustix::thread::sched_setaffinity(None, mask)?;
            }
            Err(program.exec())
        });
    }
    command
}

/// Whether a child has ended; it stays to be reaped.
pub(crate) fn has_ended(pid: Pid) -> Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(rustix::process::waitid(WaitId::Pid(pid), options).context("cannot wait for the trial")?.is_some())
}

/// Sleeps until there is a signal or output, or the time is over.
pub(crate) fn wait(signals: &Signals, captures: &[Option<&Capture>], time: Duration) -> Result<()> {
    let mut sources = vec![PollFd::from_borrowed_fd(signals.readable(), PollFlags::IN)];
    let pipes = captures.iter().flatten().filter_map(|capture| capture.readable());
    sources.extend(pipes.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
    let time = Timespec::try_from(time).context("a time limit beyond what the kernel can count")?;
    match poll(&mut sources, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for the trial"),
    }
}

/// Explains why a program cannot be started, and what to look at.
pub(crate) fn cannot_start(program: &str, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') && Path::new(program).exists() => {
            "; the file is there, so what is missing is its interpreter or dynamic loader"
        }
        io::ErrorKind::NotFound if program.contains('/') => "; is it in the image under this path?",
        io::ErrorKind::NotFound => "; it is in no folder of PATH",
        io::ErrorKind::PermissionDenied => "; is it an executable file, and may this user run it?",
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            "; it is neither a program for this machine nor a script with a #! line"
        }
        _ => "",
    };
    format!("cannot start {program}: {error}{hint}")
}
