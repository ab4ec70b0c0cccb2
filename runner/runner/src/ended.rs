//! The outcome of a launch.

use std::time::{Duration, SystemTime};

use assay_schema::kernel::Death;

use crate::pmu::Counts;
use crate::usage::{Exit, Reaped, Usage};

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
    pub(crate) counts: Counts,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Number of descendant processes still running when the process exited.
    pub(crate) left_behind: usize,
    /// Outcomes of the started services.
    pub(crate) services: Vec<Served>,
    /// Abnormal deaths of other processes of the trial.
    pub(crate) deaths: Vec<Death>,
}

/// Outcome of a service.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) ready: Option<Duration>,
    pub(crate) ended: Option<Reaped>,
    pub(crate) killed: bool,
    pub(crate) output: Vec<u8>,
}

impl Ended {
    /// The outcome of a process that never ran.
    pub(crate) fn never_ran(how: How) -> Self {
        Self {
            how,
            started_at: SystemTime::now(),
            duration: Duration::ZERO,
            usage: None,
            counts: Counts::default(),
            stdout: Vec::new(),
            stderr: Vec::new(),
            left_behind: 0,
            services: Vec::new(),
            deaths: Vec::new(),
        }
    }
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// The trial was not tried, for a reason outside of its program.
    NotStarted(String),
    /// The program cannot be started on this machine, however often it is tried.
    CannotStart(String),
    Exited(Exit),
    TimedOut,
    TooMuchOutput,
    /// It reached a limit of storage.
    ReachedLimit(String),
    /// A service did not become ready or exited while it was needed.
    Deserted(String),
}

impl How {
    /// Whether no process of the trial ran.
    pub(crate) fn never_ran(&self) -> bool {
        matches!(self, Self::NotStarted(_) | Self::CannotStart(_))
    }

    /// Names the part of the trial that a reason is about.
    pub(crate) fn of(self, part: &str) -> Self {
        match self {
            Self::NotStarted(reason) => Self::NotStarted(format!("{part}: {reason}")),
            Self::CannotStart(reason) => Self::CannotStart(format!("{part}: {reason}")),
            other => other,
        }
    }
}

impl From<String> for How {
    /// A reason outside of the program.
    fn from(reason: String) -> Self {
        Self::NotStarted(reason)
    }
}
