//! Start, wait and exit detection of one process.

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
use crate::ended::How;
use crate::exec::Program;
use crate::signals::Signals;
use crate::usage;

/// Time for killed processes to exit; only a process stuck in the kernel needs longer.
pub(crate) const SWEEP_TIME: Duration = Duration::from_secs(5);

/// A process to be started.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Replaced by the program in a custom exec; the name given to it is only shown in tools.
    pub(crate) command: Command,
    floor: PipeReader,
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// Peak memory inherited from the fork, in bytes.
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
                // If the runner is killed, the trial is killed too.
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
        // A pipe reaches end of file when all writers close it, and the command holds writing ends.
        drop(command);
        let mut bytes = [0; size_of::<u64>()];
        // The child has executed its program, so that the value is available.
        let floor = floor.read_exact(&mut bytes).ok().map(|()| u64::from_ne_bytes(bytes));
        Ok(Started { pid: Pid::from_child(&child), floor })
    }
}

/// Whether a child has exited; it is not reaped.
pub(crate) fn has_ended(pid: Pid) -> Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(rustix::process::waitid(WaitId::Pid(pid), options).context("cannot wait for the trial")?.is_some())
}

/// Waits for a signal, output or the timeout.
pub(crate) fn wait(signals: &Signals, captures: &[Option<&Capture>], time: Duration) -> Result<()> {
    let mut sources = vec![PollFd::from_borrowed_fd(signals.readable(), PollFlags::IN)];
    let pipes = captures.iter().flatten().filter_map(|capture| capture.readable());
    sources.extend(pipes.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
    let time = Timespec::try_from(time).context("the timeout exceeds the kernel's range")?;
    match poll(&mut sources, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for the trial"),
    }
}

/// Errors of execve(2) that a repetition does not change.
const PERMANENT: [i32; 9] = [
    libc::ENOENT,
    libc::EACCES,
    libc::ENOEXEC,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::ELOOP,
    libc::ENAMETOOLONG,
    libc::E2BIG,
    libc::ELIBBAD,
];

/// Explains why a program cannot be started, with a hint.
pub(crate) fn cannot_start(program: &str, error: &io::Error) -> How {
    let hint = match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') && Path::new(program).exists() => {
            "; the file exists, but its interpreter or dynamic loader is missing"
        }
        io::ErrorKind::NotFound if program.contains('/') => "; check that the image contains this path",
        io::ErrorKind::NotFound => "; not found in PATH",
        io::ErrorKind::PermissionDenied => "; check that it is an executable file and that this user may run it",
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            "; not a program for this machine and not a script with a #! line"
        }
        _ => "",
    };
    let reason = format!("cannot start {program}: {error}{hint}");
    if PERMANENT.contains(&error.raw_os_error().unwrap_or_default()) {
        How::CannotStart(reason)
    } else {
        How::NotStarted(reason)
    }
}
