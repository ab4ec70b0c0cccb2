//! Child processes that never outlive the one that started them.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A child process and its two pipes. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    input: ChildStdin,
    /// Its output.
    pub output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this same program with other arguments, on these CPUs, or if none are named on those of this process. If this process dies,
    /// however, the child is killed by the kernel.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn start(name: &str, arguments: &[String], cpus: &[usize]) -> io::Result<Self> {
        let parent = getpid();
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        let cpus = (!cpus.is_empty()).then_some(set);
        let mut command = Command::new("/proc/self/exe");
        command.arg0("batch-curp-ho").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                if let Some(cpus) = &cpus {
                    sched_setaffinity(None, cpus)?;
                }
                // The parent may have died before the lines above.
                if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
            });
        }
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("it was asked for");
        let output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("it was asked for"));
        Ok(Self { name: name.to_owned(), child, input, output })
    }

    /// Sends a line.
    ///
    /// # Errors
    ///
    /// When the child is gone.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.input, "{line}").map_err(|error| self.gone(&error.to_string()))
    }

    /// Waits for a line.
    ///
    /// # Errors
    ///
    /// When the child ends instead.
    pub fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(self.gone("it ended"));
        }
        Ok(line.trim_end().to_owned())
    }

    /// Waits for a line that starts with `prefix`, and returns the rest.
    ///
    /// # Errors
    ///
    /// When it is another one.
    pub fn expect(&mut self, prefix: &str) -> io::Result<String> {
        let line = self.hear()?;
        let rest = line.strip_prefix(prefix).map(str::trim_start);
        rest.map(str::to_owned).ok_or_else(|| self.gone(&format!("it said {line:?} instead of {prefix:?}")))
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        // The child is not signalled after `end`, so that it has not been reaped and its process id is valid.
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Kills the process and waits for its exit, which releases resources such as its port.
    ///
    /// # Errors
    ///
    /// If a system call fails.
    pub fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    fn gone(&self, why: &str) -> io::Error {
        io::Error::other(format!("{}: {why}", self.name))
    }
}

/// The CPUs that this process may use.
///
/// # Errors
///
/// When the system refuses.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whether it ended by itself or not: afterwards it is gone. Both steps fail only for a child that is gone already.
        let _ = self.end();
    }
}
