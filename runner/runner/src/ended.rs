//! How a process ended, with what it left.

use std::time::{Duration, SystemTime};

use crate::roles::Served;
use crate::usage::{Exit, Usage};

/// No result is larger.
pub(crate) const STDOUT_LIMIT: usize = 8 << 20;

/// What became of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) started_at: SystemTime,
    pub(crate) duration: Duration,
    /// Absent when it never ran or could not be reaped.
    pub(crate) usage: Option<Usage>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// How many other processes it had started and were still running at its end.
    pub(crate) left_behind: usize,
    /// What became of the services that were started.
    pub(crate) services: Vec<Served>,
}

impl Ended {
    /// The end of something that never ran.
    pub(crate) fn never_ran(how: How) -> Self {
        Self {
            how,
            started_at: SystemTime::now(),
            duration: Duration::ZERO,
            usage: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            left_behind: 0,
            services: Vec::new(),
        }
    }
}

/// How a launch ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum How {
    NotStarted(String),
    Exited(Exit),
    TimedOut,
    TooMuchOutput,
    /// A service did not become ready, or ended while it was needed.
    Deserted(String),
}
