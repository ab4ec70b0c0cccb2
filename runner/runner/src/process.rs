//! One process: how it is made, waited for, and found to have ended.

use std::io::{self, PipeReader, Read};
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
use crate::usage;

/// How long killed processes may take to end; only one stuck in the kernel takes longer.
pub(crate) const SWEEP_TIME: Duration = Duration::from_secs(5);

/// A process to be started.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Becomes the program; with its own exec, so the name given to it is only for show.
    pub(crate) command: Command,
    floor: PipeReader,
}

/// A process that executes its program.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// The memory that it had been forked with before, in bytes.
    pub(crate) floor: Option<u64>,
}

impl Prepared {
    pub(crate) fn new(program: Program, cpus: Option<&CpuSet>) -> Result<Self> {
        let mut command = Command::new("trial");
        command.process_group(0).stdin(Stdio::null());
        let runner = rustix::process::getpid();
        let mask = cpus.map(CpuSet::mask);
        let (floor, tell) = io::pipe().context("cannot make a pipe")?;
        // SAFETY: between fork and exec the closure makes system calls only, prctl, getppid, sched_setaffinity, getrusage, write and
        // execve; it neither allocates nor locks.
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
                rustix::io::write(&tell, &usage::own_peak_memory().to_ne_bytes())?;
                Err(program.exec())
            });
        }
        Ok(Self { command, floor })
    }

    pub(crate) fn spawn(self) -> io::Result<Started> {
        let Self { mut command, mut floor } = self;
        let child = command.spawn()?;
        // Pipes end when the processes close them; the command holds their writing ends too.
        drop(command);
        let mut bytes = [0; size_of::<u64>()];
        // The child has executed its program, so that what it told is there.
        let floor = floor.read_exact(&mut bytes).ok().map(|()| u64::from_ne_bytes(bytes));
        Ok(Started { pid: Pid::from_child(&child), floor })
    }
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
