//! What the planner asks for: the blocks of one wave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::names;
pub use crate::output::{Format, MetricSource, Output};
use crate::read::records;
use crate::roles::{Image, MOST_ROLES, Role, RoleCommand};

records! {
    /// Everything `assay-runner` needs to execute the blocks of one wave.
    pub struct Wave {
        /// The format's name.
        pub schema: SchemaId,
        /// The run this wave belongs to.
        pub run: Run,
        /// Digest of the experiment's specification.
        pub experiment: String,
        /// The wave's number in its run, from 0.
        pub wave: u64,
        /// Why the blocks run; without it to reach a verdict.
        pub purpose: Option<Purpose>,
        /// What every trial of the wave has in common.
        pub workload: Workload,
        /// What a block must find before its first trial.
        pub environment: Option<Requirements>,
        /// The images that arms take their programs from.
        pub images: Option<Vec<Image>>,
        /// The combinations of sweep values.
        pub points: Vec<Point>,
        /// The alternatives compared.
        pub arms: Vec<Arm>,
        /// The commands, one per point and arm.
        pub cells: Vec<Cell>,
        /// The groups of trials, each run in one pod on one node.
        pub blocks: Vec<Block>,
    }

    /// Which run a record belongs to.
    pub struct Run {
        /// Kubernetes namespace; empty for a local run.
        pub namespace: String,
        /// Name of the `BenchmarkRun`.
        pub name: String,
        /// Its uid, which no later run of the same name shares.
        pub uid: String,
    }

    /// What every trial of a wave has in common.
    pub struct Workload {
        /// Image reference the blocks run; absent for a local run.
        pub image: Option<String>,
        /// Where the result comes from.
        pub output: Output,
        /// A result without a parity digest is malformed.
        pub parity_required: Option<bool>,
        /// A trial that runs longer than this many seconds is killed.
        pub timeout_seconds: f64,
        /// From which every process's layout of memory is drawn; absent: it is what the system makes of it.
        pub layout_seed: Option<u64>,
        /// What trials prepare is kept for later trials of the same arm of the block; absent: nothing is.
        pub prepares: Option<bool>,
        /// The processes of a trial in the order in which they start; absent: a trial is one process.
        pub roles: Option<Vec<Role>>,
    }

    /// What a block must find before its first trial.
    #[derive(Default)]
    pub struct Requirements {
        /// Keys of the fingerprint, hard or soft, and the values they must have, as text.
        pub require: Option<BTreeMap<String, String>>,
        /// The isolation level that the block must read back.
        pub isolation: Option<RequiredIsolation>,
    }

    /// One combination of sweep values.
    pub struct Point {
        /// `name=value` of every sweep axis, joined by commas; empty when there is no sweep.
        pub key: String,
        /// The same as a map.
        pub parameters: BTreeMap<String, String>,
    }

    /// One alternative.
    pub struct Arm {
        /// Its name in the run.
        pub name: String,
        /// Whether the others are compared with it.
        pub baseline: bool,
        /// The baseline again, run from a copy of its program.
        pub null: Option<bool>,
        /// Reference of the image that its programs are from.
        pub image: Option<String>,
    }

    /// The command that one trial of a point and arm runs.
    pub struct Cell {
        /// Index into [`Wave::points`].
        pub point: usize,
        /// Index into [`Wave::arms`].
        pub arm: usize,
        /// Which of the arm's builds it runs, of an arm that is several.
        pub build: Option<String>,
        /// Reference of the image that the build's programs are from; absent: the arm's.
        pub image: Option<String>,
        /// Program and arguments, passed on verbatim but for ports.
        pub argv: Vec<String>,
        /// The elements of `argv` in which `$(port.ROLE)` stands for a role's port.
        pub ports: Option<Vec<usize>>,
        /// The commands of the other roles, in their order.
        pub roles: Option<Vec<RoleCommand>>,
        /// Environment, passed on verbatim.
        pub env: BTreeMap<String, String>,
        /// Every parameter in force, for the record.
        pub parameters: BTreeMap<String, String>,
    }

    /// Trials that run one after the other in one place.
    pub struct Block {
        /// `w<wave>-b<block>`.
        pub id: String,
        /// The claim under which the block may run.
        pub lease: Option<Lease>,
        /// Cells launched once before the measured slots.
        pub warmup: Option<Vec<usize>>,
        /// The cell of each measured slot.
        pub order: Vec<usize>,
    }

    /// The claim under which a block may run.
    pub struct Lease {
        /// The node claimed.
        pub node: String,
        /// The fencing token, which grows with every claim.
        pub token: u64,
    }
}

/// The `schema` field of a wave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaId {
    /// The only version there is.
    #[default]
    #[serde(rename = "assay.dev/wave/v1alpha1")]
    V1Alpha1,
}

/// What a wave's blocks may be used for. The runner does not care; the analysis does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// To reach a verdict.
    Screen,
    /// To repeat a verdict on fresh blocks.
    Confirm,
    /// To try loads, with a part of the cells only.
    Search,
}

/// The isolation levels that can be required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequiredIsolation {
    /// The block's CPUs are its own.
    #[serde(rename = "ExclusiveCPUs")]
    ExclusiveCpus,
}

impl Check for Wave {
    fn check(&self) -> Result<(), Violation> {
        check::record("run", &self.run)?;
        check::digest_by("sha256", "experiment", &self.experiment)?;
        check::length("workload.image", self.workload.image.as_deref().unwrap_or(""), 0, 512)?;
        check::record("workload.output", &self.workload.output)?;
        check::positive("workload.timeoutSeconds", self.workload.timeout_seconds)?;
        check::list("workload.roles", self.workload.roles.as_deref().unwrap_or_default(), 0, MOST_ROLES)?;

        check::record("environment", self.environment.as_ref())?;
        check::list("images", self.images.as_deref().unwrap_or_default(), 0, 32)?;
        check::count("points", self.points.len(), 1, 10_000)?;
        for (i, point) in self.points.iter().enumerate() {
            check::length(&format!("points[{i}].key"), &point.key, 0, 4096)?;
            check::parameters(&format!("points[{i}].parameters"), &point.parameters)?;
        }
        check::count("arms", self.arms.len(), 1, 32)?;
        for (i, arm) in self.arms.iter().enumerate() {
            check::length(&format!("arms[{i}].name"), &arm.name, 1, 63)?;
            check::length(&format!("arms[{i}].image"), arm.image.as_deref().unwrap_or("-"), 1, 512)?;
        }
        check::list("cells", &self.cells, 1, 100_000)?;
        check::list("blocks", &self.blocks, 1, 1_000)
    }
}

impl Check for Run {
    fn check(&self) -> Result<(), Violation> {
        check::length("namespace", &self.namespace, 0, 63)?;
        check::length("name", &self.name, 1, 253)?;
        check::length("uid", &self.uid, 1, 64)
    }
}

impl Check for Requirements {
    fn check(&self) -> Result<(), Violation> {
        let require = self.require.iter().flatten();
        check::count("require", require.clone().count(), 0, 32)?;
        for (key, value) in require {
            check::length("require", key, 1, 63)?;
            check::length(&format!("require.{key}"), value, 0, 512)?;
        }
        Ok(())
    }
}

impl Check for Cell {
    fn check(&self) -> Result<(), Violation> {
        check::length("build", self.build.as_deref().unwrap_or("-"), 1, 63)?;
        check::length("image", self.image.as_deref().unwrap_or("-"), 1, 512)?;
        check::count("argv", self.argv.len(), 1, 256)?;
        check::count("ports", self.ports.as_ref().map_or(0, Vec::len), 0, 256)?;
        check::list("roles", self.roles.as_deref().unwrap_or_default(), 0, MOST_ROLES - 1)?;
        check::parameters("env", &self.env)?;
        check::parameters("parameters", &self.parameters)
    }
}

impl Check for Block {
    fn check(&self) -> Result<(), Violation> {
        names::block_id("id", &self.id)?;
        check::record("lease", self.lease.as_ref())?;
        check::count("warmup", self.warmup.as_ref().map_or(0, Vec::len), 0, 100_000)?;
        check::count("order", self.order.len(), 1, 100_000)
    }
}

impl Check for Lease {
    fn check(&self) -> Result<(), Violation> {
        check::length("node", &self.node, 1, 253)
    }
}
