//! Connection to the keeper, which stores each attempt immediately where trials cannot modify it.
//!
//! Both sides send JSON objects, one per line (docs/decisions/keeper.md):
//!
//! | runner | keeper |
//! |---|---|
//! | | `{"keeper": "assay.dev/keeper/v1alpha1", "executor": NAME, "ended": {TRIAL: REASON}}`, or `{"refused": REASON}` |
//! | `{"started": ATTEMPT}` | `{"kept": TRIAL}` |
//! | `{"attempt": ATTEMPT}` | `{"kept": TRIAL}` |
//! | `{"done": true}`, `{"stopped": REASON}` or `{"failed": REASON}` | |
//!
//! The runner continues after the acknowledgement. While the store is unreachable, the keeper retries and the runner
//! waits.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use assay_schema::Attempt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::FdFlags;
use serde::Deserialize;
use serde_json::json;

use crate::signals::Signals;
use crate::stop::Stop;
use crate::usage;

/// The protocol version.
const PROTOCOL: &str = "assay.dev/keeper/v1alpha1";
/// Timeout for the keeper to listen; its image may have to be pulled first.
const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum length of an answer.
const LONGEST_ANSWER: usize = 1 << 20;

/// Address of a keeper.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// A listening Unix socket.
    Socket(PathBuf),
    /// A connection inherited by the runner.
    Descriptor(RawFd),
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Socket(path.into())),
            Some(("fd", number)) => {
                let number = number.parse().ok().filter(|&number: &RawFd| number > 2);
                Ok(Self::Descriptor(number.with_context(|| format!("{text:?}: a descriptor is a number above 2"))?))
            }
            _ => bail!("{text:?}: write unix:/absolute/path or fd:NUMBER"),
        }
    }
}

/// A connection to a keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    stream: UnixStream,
    /// Bytes read after the last complete line.
    rest: Vec<u8>,
    /// The keeper's name for this execution of the block.
    pub(crate) executor: String,
    /// Trials that terminated an earlier execution of the block, with the reason.
    pub(crate) ended: BTreeMap<String, String>,
}

/// The keeper's first line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Hello {
    Refused {
        refused: String,
    },
    Keeps {
        keeper: String,
        executor: String,
        #[serde(default)]
        ended: BTreeMap<String, String>,
    },
}

#[derive(Deserialize)]
struct Answer {
    kept: Option<String>,
    refused: Option<String>,
}

impl Keeper {
    /// Connects before any trial can. A keeper accepts a single connection.
    pub(crate) fn connect(address: &Address, signals: &Signals) -> Result<Self, Stop> {
        let stream = match address {
            Address::Socket(path) => wait_for_socket(path, signals)?,
            Address::Descriptor(number) => adopt(*number).map_err(Stop::Input)?,
        };
        let mut keeper = Self { stream, rest: Vec::new(), executor: String::new(), ended: BTreeMap::new() };
        keeper.stream.set_nonblocking(true).context("cannot use the keeper's connection").map_err(Stop::Runner)?;
        let line = keeper.line(signals, Signals::stop)?;
        match serde_json::from_slice(&line).map_err(|error| not_understood(&line, &error))? {
            Hello::Refused { refused } => Err(Stop::Runner(anyhow!("the keeper rejected the block: {refused}"))),
            Hello::Keeps { keeper: protocol, .. } if protocol != PROTOCOL => Err(Stop::Input(anyhow!(
                "the protocol of the keeper is {protocol:?} and that of this runner {PROTOCOL}"
            ))),
            Hello::Keeps { executor, ended, .. } => {
                (keeper.executor, keeper.ended) = (executor, ended);
                Ok(keeper)
            }
        }
    }

    /// Sends an attempt, as `started` or as `attempt`, and waits for the acknowledgement, also after an announced end:
    /// a trial whose start is stored must run, and one that has ended must be stored.
    pub(crate) fn keep(&mut self, what: &str, attempt: &Attempt, signals: &Signals) -> Result<(), Stop> {
        self.send(&json!({ what: attempt })).map_err(Stop::Runner)?;
        let line = self.line(signals, Signals::must_stop)?;
        let answer: Answer = serde_json::from_slice(&line).map_err(|error| not_understood(&line, &error))?;
        match answer {
            Answer { kept: Some(trial), .. } if trial == attempt.trial => Ok(()),
            Answer { refused: Some(reason), .. } => {
                Err(Stop::Runner(anyhow!("the keeper rejected attempt {}: {reason}", attempt.id)))
            }
            _ => Err(Stop::Runner(anyhow!("the keeper answers {:?}", String::from_utf8_lossy(&line)))),
        }
    }

    /// Sends the final message. The keeper decides the fate of a trial in progress.
    pub(crate) fn end(&mut self, done: &Result<(), Stop>, signals: &Signals) {
        let word = match done {
            Ok(()) => json!({"done": true}),
            Err(Stop::Signal(signal)) if signals.sent_from_beside() => {
                let signal = usage::signal_name(*signal);
                json!({"failed": format!("another process of the pod sent it {signal}")})
            }
            Err(Stop::Signal(signal)) => json!({"stopped": usage::signal_name(*signal)}),
            Err(Stop::Setup(reason)) => json!({"failed": reason}),
            Err(Stop::Input(error) | Stop::Runner(error)) => json!({"failed": format!("{error:#}")}),
        };
        // Errors are ignored, because the keeper may have exited.
        let _ = self.send(&word);
    }

    /// Sends one complete line.
    fn send(&mut self, frame: &serde_json::Value) -> Result<()> {
        let mut text = serde_json::to_vec(frame).context("cannot encode the message as JSON")?;
        text.push(b'\n');
        let mut left = &text[..];
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut writable = [PollFd::new(&self.stream, PollFlags::OUT)];
                    let _ = poll(&mut writable, None);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the keeper closed the connection"),
            }
        }
        Ok(())
    }

    /// Reads one line; returns early if the runner must stop.
    fn line(&mut self, signals: &Signals, stop: fn(&Signals) -> Option<i32>) -> Result<Vec<u8>, Stop> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let after = self.rest.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.rest, after));
            }
            match self.stream.read(&mut buffer) {
                Ok(read) if read > 0 && self.rest.len() < LONGEST_ANSWER => {
                    self.rest.extend_from_slice(&buffer[..read])
                }
                Ok(_) => return Err(Stop::Runner(anyhow!("the keeper closed the connection"))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pause(signals, stop, Some(&self.stream), None)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Runner(anyhow!(error).context("cannot read from the keeper"))),
            }
        }
    }
}

/// Waits for input, a timeout or a reason to stop.
fn pause(
    signals: &Signals,
    stop: fn(&Signals) -> Option<i32>,
    stream: Option<&UnixStream>,
    time: Option<Duration>,
) -> Result<(), Stop> {
    signals.clear();
    if let Some(signal) = stop(signals) {
        return Err(Stop::Signal(signal));
    }
    let time = time.or_else(|| signals.time_to_finish());
    let mut sources = vec![PollFd::from_borrowed_fd(signals.readable(), PollFlags::IN)];
    sources.extend(stream.map(|stream| PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)));
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    match poll(&mut sources, time.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Stop::Runner(anyhow!(error).context("cannot wait for the keeper"))),
    }
}

fn wait_for_socket(path: &Path, signals: &Signals) -> Result<UnixStream, Stop> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= give_up || !may_be_early(error.kind()) => {
                let error = anyhow!(error).context(format!("no keeper listens at {}", path.display()));
                return Err(Stop::Runner(error));
            }
            Err(_) => pause(signals, Signals::stop, None, Some(PAUSE))?,
        }
    }
}

/// Whether a keeper may not be ready yet: it has no socket, has not set the socket's mode, or does not listen.
fn may_be_early(error: io::ErrorKind) -> bool {
    matches!(error, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::ConnectionRefused)
}

/// Takes over an inherited connection and sets close-on-exec.
fn adopt(number: RawFd) -> Result<UnixStream> {
    // SAFETY: F_GETFD only asks whether the descriptor is open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        bail!("--keeper fd:{number}: the runner was not started with this descriptor");
    }
    // SAFETY: the descriptor is open, and the command line hands it over to this one owner.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC)
        .context("cannot set close-on-exec on the keeper's connection")?;
    Ok(descriptor.into())
}

fn not_understood(line: &[u8], error: &serde_json::Error) -> Stop {
    Stop::Runner(anyhow!("the keeper answers {:?}: {error}", String::from_utf8_lossy(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_that_is_not_ready_is_tried_again() {
        for code in [libc::ENOENT, libc::EACCES, libc::ECONNREFUSED] {
            assert!(may_be_early(io::Error::from_raw_os_error(code).kind()), "{code}");
        }
        for code in [libc::EINVAL, libc::ENOTSOCK, libc::EMFILE] {
            assert!(!may_be_early(io::Error::from_raw_os_error(code).kind()), "{code}");
        }
    }

    #[test]
    fn address_is_a_socket_or_a_descriptor() {
        assert!(
            matches!("unix:/assay-keeper/socket".parse(), Ok(Address::Socket(path)) if path == Path::new("/assay-keeper/socket"))
        );
        assert!(matches!("fd:3".parse(), Ok(Address::Descriptor(3))));
        for wrong in ["unix:relative", "fd:1", "fd:x", "/assay/socket", ""] {
            let error = wrong.parse::<Address>().expect_err(wrong).to_string();
            assert!(error.contains("fd:NUMBER") || error.contains("above 2"), "{wrong}: {error}");
        }
    }
}
