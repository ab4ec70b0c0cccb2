//! The attempt record: one execution of one trial, as the runner observed it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
pub use crate::generated::NoiseWindow;
use crate::kernel::Kernel;
use crate::names;
use crate::output::RawOutput;
use crate::read::records;
pub use crate::resources::Resources;
use crate::result::Scalar;
use crate::roles::{MOST_ROLES, RoleSeen};
use crate::wave::{Lease, Run};

/// MOST_ATTEMPT is the maximum size of an attempt as JSON, in bytes; the keeper rejects larger ones.
pub const MOST_ATTEMPT: usize = 16 << 20;
/// LONGEST_SECONDS bounds durations to about three centuries, because a duration in nanoseconds cannot represent more.
const LONGEST_SECONDS: f64 = 9e9;

records! {
    /// One execution of one trial, valid or not. Readings that the machine cannot provide are omitted, never written as
    /// zero.
    pub struct Attempt {
        /// The schema id of the format.
        pub schema: SchemaId,
        /// `<executor>/<trial>`, unique in the ledger.
        pub id: String,
        /// `<block>-s<slot>`, or `<block>-w<slot>` for a warm-up.
        pub trial: String,
        /// The run it belongs to.
        pub run: Run,
        /// Digest of the experiment's specification.
        pub experiment: String,
        /// The wave's number.
        pub wave: u64,
        /// The block's id.
        pub block: String,
        /// Place in the block's order, or among its warm-ups.
        pub slot: u64,
        /// The point's key.
        pub point: String,
        /// The arm's name.
        pub arm: String,
        /// The name of the build executed; only for arms with several builds.
        pub build: Option<String>,
        /// Whether this is a warm-up trial. Warm-ups are recorded and never compared.
        pub warmup: bool,
        /// The lease under which it ran.
        pub lease: Option<Lease>,
        /// Start time in RFC 3339, UTC.
        pub started_at: String,
        /// Wall time from launch to exit of the process.
        pub duration_seconds: f64,
        /// How it ended.
        pub outcome: Outcome,
        /// The exit code, when the process exited.
        pub exit_code: Option<i64>,
        /// The signal that ended the process.
        pub signal: Option<i64>,
        /// Failure description and the suggested action; absent on success.
        pub message: Option<String>,
        /// Number of descendant processes still running when the process exited.
        pub left_behind: Option<u64>,
        /// Set if this attempt terminated the runner itself without a message.
        pub ended_execution: Option<bool>,
        /// The last 16 KiB of standard error.
        pub stderr_tail: Option<String>,
        /// Program and arguments.
        pub argv: Vec<String>,
        /// Every parameter in force.
        pub parameters: BTreeMap<String, String>,
        /// The result that the process reported.
        pub result: Option<crate::Result>,
        /// The environment fingerprint.
        pub environment: Environment,
        /// The isolation in force, as read back from the system.
        pub isolation: Isolation,
        /// Noise readings around the trial.
        pub noise: Noise,
        /// Resource usage of the process.
        pub resources: Resources,
        /// Raw output of another tool, from which the result was parsed.
        pub output: Option<Vec<RawOutput>>,
        /// Events of the kernel during the trial.
        pub kernel: Option<Kernel>,
        /// The processes of a multi-process trial.
        pub roles: Option<Vec<RoleSeen>>,
        /// Fields that the keeper adds when it stores the attempt.
        pub kept: Option<Kept>,
    }

    /// Facts about an attempt that only the keeper knows.
    pub struct Kept {
        /// Whether the block's lease was in force after the end of the trial.
        pub lease: Option<KeptLease>,
        /// Offset between the machine's clock and the store's, measured at the start of the block.
        pub clock: Option<Clock>,
    }

    /// The offset between two clocks.
    pub struct Clock {
        /// Offset in seconds; positive if the machine's clock is ahead.
        pub ahead_seconds: f64,
        /// Uncertainty of the offset in seconds.
        pub uncertainty_seconds: f64,
    }

    /// The environment fingerprint.
    #[derive(Default)]
    pub struct Environment {
        /// Hard keys: must be equal for attempts to be comparable; stable across reboots.
        pub hard: BTreeMap<String, Scalar>,
        /// Soft keys: differences are reported only.
        pub soft: BTreeMap<String, Scalar>,
    }

    /// The isolation in force, read back from inside the pod.
    pub struct Isolation {
        /// The isolation level.
        pub level: IsolationLevel,
        /// The allowed CPUs as a list in the kernel's format.
        pub cpus_allowed: Option<String>,
        /// CFS quota in CPUs; absent when unlimited.
        pub cpu_quota: Option<f64>,
        /// Memory limit in bytes; absent when unlimited.
        pub memory_limit_bytes: Option<u64>,
        /// Reason for this level, as text.
        pub reason: Option<String>,
    }

    /// Noise readings around a trial.
    #[derive(Default)]
    pub struct Noise {
        /// Readings immediately before the trial.
        pub before: NoiseWindow,
        /// Readings during the trial.
        pub during: NoiseWindow,
        /// Readings immediately after the trial.
        pub after: NoiseWindow,
    }
}

/// State of a lease according to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptLease {
    /// In force.
    Held,
    /// Expired or released.
    Ended,
}

/// The `schema` field of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaId {
    /// The only version.
    #[default]
    #[serde(rename = "assay.dev/attempt/v1alpha1")]
    V1Alpha1,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Exit code 0 and a valid result.
    Succeeded,
    /// Non-zero exit code, or a signal.
    Failed,
    /// Killed at the time limit.
    TimedOut,
    /// Exit code 0 without a valid result.
    Malformed,
    /// The program could not be started.
    NotStarted,
}

/// How well the process was isolated from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IsolationLevel {
    /// Exclusive CPUs, as far as can be observed.
    #[serde(rename = "ExclusiveCPUs")]
    ExclusiveCpus,
    /// CPUs shared with others.
    Shared,
    /// Throttled by its CPU quota.
    Throttled,
    /// Isolation could not be determined.
    Unknown,
}

impl Check for Attempt {
    fn check(&self) -> Result<(), Violation> {
        check::length("id", &self.id, 1, 400)?;
        names::trial_id("trial", &self.trial)?;
        check::record("run", &self.run)?;
        check::digest_by("sha256", "experiment", &self.experiment)?;
        names::block_id("block", &self.block)?;
        check::length("point", &self.point, 0, 4096)?;
        check::length("arm", &self.arm, 1, 63)?;
        check::length("build", self.build.as_deref().unwrap_or("-"), 1, 63)?;
        check::record("lease", self.lease.as_ref())?;
        check::within("durationSeconds", self.duration_seconds, 0.0, LONGEST_SECONDS)?;
        check::length("message", self.message.as_deref().unwrap_or(""), 0, 4096)?;
        check::require(self.left_behind != Some(0), "leftBehind", || "0; without any it is left out".to_owned())?;
        check::length("stderrTail", self.stderr_tail.as_deref().unwrap_or(""), 0, 16_384)?;
        check::require(!self.argv.is_empty(), "argv", || "empty".to_owned())?;
        check::parameters("parameters", &self.parameters)?;
        check::record("result", self.result.as_ref())?;
        check::count("environment.hard", self.environment.hard.len(), 0, 128)?;
        check::count("environment.soft", self.environment.soft.len(), 0, 128)?;
        check::record("isolation", &self.isolation)?;
        check::record("noise.before", &self.noise.before)?;
        check::record("noise.during", &self.noise.during)?;
        check::record("noise.after", &self.noise.after)?;
        check::record("resources", &self.resources)?;
        if let Some(output) = &self.output {
            check::list("output", output, 1, 64)?;
        }
        check::record("kernel", self.kernel.as_ref())?;
        let clock = self.kept.as_ref().and_then(|kept| kept.clock.as_ref());
        check::not_negative("kept.clock.uncertaintySeconds", clock.map_or(0.0, |clock| clock.uncertainty_seconds))?;
        check::list("roles", self.roles.as_deref().unwrap_or_default(), 0, MOST_ROLES)
    }
}

impl Check for Isolation {
    fn check(&self) -> Result<(), Violation> {
        check::length("cpusAllowed", self.cpus_allowed.as_deref().unwrap_or(""), 0, 1024)?;
        check::positive("cpuQuota", self.cpu_quota.unwrap_or(1.0))?;
        check::require(self.memory_limit_bytes != Some(0), "memoryLimitBytes", || "zero".to_owned())?;
        check::length("reason", self.reason.as_deref().unwrap_or(""), 0, 1024)
    }
}
