//! The outcome of a launch.

use std::time::{Duration, SystemTime};

use crate::roles::Served;
use crate::usage::{Exit, Usage};

/// Maximum size of a result.
pub(crate) const STDOUT_LIMIT: usize = 8 << 20;

/// The outcome of a launch.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) started_at: SystemTime,
    pub(crate) duration: Duration,
    /// Absent if the process never ran or could not be reaped.
    pub(crate) usage: Option<Usage>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Number of descendant processes still running when the process exited.
    pub(crate) left_behind: usize,
    /// Outcomes of the started services.
    pub(crate) services: Vec<Served>,
}

impl Ended {
    /// The outcome of a process that never ran.
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
    /// A service did not become ready or exited while it was needed.
    Deserted(String),
}
