//! What the runner saw of one execution of one trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::names;
use crate::output::RawOutput;
use crate::read::records;
pub use crate::resources::Resources;
use crate::result::Scalar;
use crate::roles::{MOST_ROLES, RoleSeen};
use crate::wave::{Lease, Run};

/// How many bytes an attempt has at most, as JSON: the keeper takes no more.
pub const MOST_ATTEMPT: usize = 16 << 20;
/// Some three centuries: no trial takes longer, and a duration in nanoseconds could not hold it.
const LONGEST_SECONDS: f64 = 9e9;

records! {
    /// One execution of one trial, valid or not. A reading the machine could not give is left out, never written as zero.
    pub struct Attempt {
        /// The format's name.
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
        /// Which of the arm's builds it ran, of an arm that is several.
        pub build: Option<String>,
        /// Recorded, never compared.
        pub warmup: bool,
        /// The claim under which it ran.
        pub lease: Option<Lease>,
        /// RFC 3339, UTC.
        pub started_at: String,
        /// Launch of the process to its end.
        pub duration_seconds: f64,
        /// How it ended.
        pub outcome: Outcome,
        /// The exit code, when the process exited.
        pub exit_code: Option<i64>,
        /// The signal that ended the process.
        pub signal: Option<i64>,
        /// What happened and what to look at; absent when it succeeded.
        pub message: Option<String>,
        /// How many processes it had started that were still running at its end.
        pub left_behind: Option<u64>,
        /// What runs the trials ended with this one, without a word.
        pub ended_execution: Option<bool>,
        /// The last 16 KiB of standard error.
        pub stderr_tail: Option<String>,
        /// Program and arguments.
        pub argv: Vec<String>,
        /// Every parameter in force.
        pub parameters: BTreeMap<String, String>,
        /// What the process reported.
        pub result: Option<crate::Result>,
        /// Where it ran.
        pub environment: Environment,
        /// What the process really had.
        pub isolation: Isolation,
        /// What else went on.
        pub noise: Noise,
        /// What the process used.
        pub resources: Resources,
        /// What another tool wrote, from which the result was read.
        pub output: Option<Vec<RawOutput>>,
        /// The processes of a trial that has several.
        pub roles: Option<Vec<RoleSeen>>,
        /// What the keeper adds when it has the attempt.
        pub kept: Option<Kept>,
    }

    /// What the keeper knows of an attempt and the runner does not.
    pub struct Kept {
        /// Whether the block's lease was in force after the trial had ended.
        pub lease: Option<KeptLease>,
        /// The machine's clock beside that of the store, when the block began.
        pub clock: Option<Clock>,
    }

    /// A clock beside another.
    pub struct Clock {
        /// How far it is ahead; below zero, behind.
        pub ahead_seconds: f64,
        /// How wrong that can be.
        pub uncertainty_seconds: f64,
    }

    /// The fingerprint of the place.
    #[derive(Default)]
    pub struct Environment {
        /// Must be equal for attempts to be compared; stable over a reboot.
        pub hard: BTreeMap<String, Scalar>,
        /// Shown when they differ.
        pub soft: BTreeMap<String, Scalar>,
    }

    /// What the process really had, read back from inside.
    pub struct Isolation {
        /// The class.
        pub level: IsolationLevel,
        /// CPU list as the kernel prints it.
        pub cpus_allowed: Option<String>,
        /// CPUs' worth of CFS quota; absent when unlimited.
        pub cpu_quota: Option<f64>,
        /// Absent when unlimited.
        pub memory_limit_bytes: Option<u64>,
        /// Why this level, in words.
        pub reason: Option<String>,
    }

    /// Readings around a trial.
    #[derive(Default)]
    pub struct Noise {
        /// Right before it.
        pub before: NoiseWindow,
        /// Over the trial.
        pub during: NoiseWindow,
        /// Right after it.
        pub after: NoiseWindow,
    }

    /// Readings over one window.
    #[derive(Default)]
    pub struct NoiseWindow {
        /// Length of the window.
        pub window_seconds: Option<f64>,
        /// Length of the window of the shares of CPU time, when it is longer than the trial.
        pub shares_window_seconds: Option<f64>,
        /// Share of the allowed CPUs' time that the hypervisor took.
        pub steal_ratio: Option<f64>,
        /// Share of the allowed CPUs' time spent on anything but this trial.
        pub other_work_ratio: Option<f64>,
        /// How wrong `other_work_ratio` can be, because the kernel counts in steps.
        pub other_work_uncertainty: Option<f64>,
        /// Time stopped by the CPU quota.
        pub throttled_seconds: Option<f64>,
        /// Quota periods in which that happened.
        pub throttled_periods: Option<u64>,
        /// Growth of PSI's some-stall for CPU.
        pub pressure_cpu_seconds: Option<f64>,
        /// The same for memory.
        pub pressure_memory_seconds: Option<f64>,
        /// The same for I/O.
        pub pressure_io_seconds: Option<f64>,
        /// The memory-bandwidth probe.
        pub read_bandwidth_bytes_per_second: Option<f64>,
        /// Median lateness of a short sleep.
        pub timer_lateness_seconds: Option<f64>,
        /// Time of a fixed amount of arithmetic.
        pub spin_seconds: Option<f64>,
        /// Time of a fixed pass over `canary_bytes` of memory.
        pub canary_seconds: Option<f64>,
        /// The memory that the canary's pass is spread over.
        pub canary_bytes: Option<u64>,
        /// How busy the CPUs outside the allowed ones were: 1 is one CPU's worth.
        pub other_cpus_ratio: Option<f64>,
    }
}

/// What the ledger said of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptLease {
    /// Of no end.
    Held,
    /// It had ended.
    Ended,
}

/// The `schema` field of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaId {
    /// The only version there is.
    #[default]
    #[serde(rename = "assay.dev/attempt/v1alpha1")]
    V1Alpha1,
}

/// How an attempt ended.
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
    /// The program could not be launched.
    NotStarted,
}

/// How well the process was kept apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IsolationLevel {
    /// Its CPUs are its own, as far as can be seen.
    #[serde(rename = "ExclusiveCPUs")]
    ExclusiveCpus,
    /// Others may use its CPUs.
    Shared,
    /// It was stopped by its CPU quota.
    Throttled,
    /// Nothing could be read.
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

impl Check for NoiseWindow {
    fn check(&self) -> Result<(), Violation> {
        for (field, value) in [
            ("windowSeconds", self.window_seconds),
            ("sharesWindowSeconds", self.shares_window_seconds),
            ("stealRatio", self.steal_ratio),
            ("otherWorkRatio", self.other_work_ratio),
            ("otherWorkUncertainty", self.other_work_uncertainty),
            ("throttledSeconds", self.throttled_seconds),
            ("pressureCpuSeconds", self.pressure_cpu_seconds),
            ("pressureMemorySeconds", self.pressure_memory_seconds),
            ("pressureIoSeconds", self.pressure_io_seconds),
            ("timerLatenessSeconds", self.timer_lateness_seconds),
            ("otherCpusRatio", self.other_cpus_ratio),
        ] {
            check::not_negative(field, value.unwrap_or(0.0))?;
        }
        check::positive("readBandwidthBytesPerSecond", self.read_bandwidth_bytes_per_second.unwrap_or(1.0))?;
        check::positive("spinSeconds", self.spin_seconds.unwrap_or(1.0))?;
        check::positive("canarySeconds", self.canary_seconds.unwrap_or(1.0))?;
        check::require(self.canary_bytes != Some(0), "canaryBytes", || "zero".to_owned())
    }
}
