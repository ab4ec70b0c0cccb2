//! The server as a child process, for runs without an address of one.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

/// The line that a server prints once it can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// Where it listens.
    pub address: SocketAddr,
    /// Entries of its database.
    pub entries: u32,
    /// Bytes of an entry.
    pub entry_size: usize,
    /// The most questions per batch.
    pub batch_limit: u32,
}

/// A server that lives as long as this value, and not longer than the thread that started it.
#[derive(Debug)]
pub struct ServerProcess {
    process: Child,
    address: SocketAddr,
}

impl ServerProcess {
    /// Starts `program serve` and waits until it can be asked.
    ///
    /// # Errors
    ///
    /// When it does not start, or ends before it listens.
    pub fn start(program: &Path, flags: &[String]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("serve").arg("--listen=127.0.0.1:0").args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let parent = std::process::id();
        // SAFETY: between fork and exec the closure makes three system calls and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have been gone before the signal was ordered.
                if libc::getppid().cast_unsigned() != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        let mut process = command.spawn()?;
        let out = process.stdout.take().expect("standard output is a pipe");
        // From here on the process ends with this value.
        let mut server = Self { process, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        if line.is_empty() {
            let status = server.process.wait()?;
            return Err(io::Error::other(format!("the server ended before it listened: {status}")));
        }
        let announcement: Announcement = serde_json::from_str(&line)?;
        server.address = announcement.address;
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
