//! Child processes that never outlive the one that started them.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A child process and its two pipes. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    input: ChildStdin,
    /// What it prints.
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
        let parent = std::process::id();
        let cpus = (!cpus.is_empty()).then(|| cpu_set(cpus));
        let mut command = Command::new("/proc/self/exe");
        command.arg0("batch-curp-ho").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(io::Error::last_os_error());
                }
                if let Some(cpus) = &cpus
                    && libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) != 0
                {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have died before the line above.
                if libc::getppid().cast_unsigned() != parent { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
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
    pub fn signal(&mut self, signal: i32) -> io::Result<()> {
        // SAFETY: no pointers are passed. Nobody signals a child after `end`, so it has not been waited for, and the number is
        // still its own.
        match unsafe { libc::kill(self.child.id().cast_signed(), signal) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Kills it and waits until it is gone: until then it may hold what it held, such as its port.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    fn gone(&self, why: &str) -> io::Error {
        io::Error::other(format!("{}: {why}", self.name))
    }
}

fn cpu_set(cpus: &[usize]) -> libc::cpu_set_t {
    // SAFETY: a set of all zeros is the empty one, and a number beyond its size changes nothing.
    unsafe {
        let mut set = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu, &mut set));
        set
    }
}

/// The CPUs that this process may use.
///
/// # Errors
///
/// When the system refuses.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let mut set = cpu_set(&[]);
    // SAFETY: the pointer is to a set of our own, of the size that is named.
    unsafe {
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whether it ended by itself or not: afterwards it is gone. Both steps fail only for a child that is gone already.
        let _ = self.end();
    }
}
