//! The wave record: the blocks that the planner wants executed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::names;
pub use crate::output::{Format, MetricSource, Output};
use crate::read::records;
use crate::roles::{Image, MOST_ROLES, Role, RoleCommand};

records! {
    /// Input of `assay-runner`: everything needed to execute the blocks of one wave.
    pub struct Wave {
        /// The schema id of the format.
        pub schema: SchemaId,
        /// The run this wave belongs to.
        pub run: Run,
        /// Digest of the experiment's specification.
        pub experiment: String,
        /// The wave's number in its run, from 0.
        pub wave: u64,
        /// Purpose of the blocks.
        pub purpose: Purpose,
        /// Settings shared by all trials of the wave.
        pub workload: Workload,
        /// Preconditions of every block.
        pub environment: Option<Requirements>,
        /// The images from which arms take their programs.
        pub images: Option<Vec<Image>>,
        /// The combinations of sweep values.
        pub points: Vec<Point>,
        /// The compared arms.
        pub arms: Vec<Arm>,
        /// The commands, one per point and arm.
        pub cells: Vec<Cell>,
        /// Groups of trials, each executed in one pod on one node.
        pub blocks: Vec<Block>,
    }

    /// Identity of the run.
    pub struct Run {
        /// Kubernetes namespace; empty for a local run.
        pub namespace: String,
        /// Name of the `BenchmarkRun`.
        pub name: String,
        /// uid of the `BenchmarkRun`, unique among runs of the same name.
        pub uid: String,
    }

    /// Settings shared by all trials of a wave.
    pub struct Workload {
        /// Image of the blocks; absent for a local run.
        pub image: Option<String>,
        /// Where to read the result.
        pub output: Output,
        /// If set, a result without a parity digest is malformed.
        pub parity_required: Option<bool>,
        /// Trials are killed after this many seconds.
        pub timeout_seconds: f64,
        /// Seed of the memory layout randomization of each process; absent: use the system's own.
        pub layout_seed: Option<u64>,
        /// If set, data prepared by trials is retained for later trials of the same arm in the block.
        pub prepares: Option<bool>,
        /// Variables of the runner's own environment that trials get; absent: none.
        pub inherited: Option<Inherited>,
        /// The processes of a trial in start order; absent: one process.
        pub roles: Option<Vec<Role>>,
    }

    /// Variables that trials inherit.
    #[derive(Default)]
    pub struct Inherited {
        /// The variables' names.
        pub names: Vec<String>,
        /// Those whose values attempts have.
        pub recorded: Vec<String>,
    }

    /// Preconditions of a block.
    #[derive(Default)]
    pub struct Requirements {
        /// Required values of fingerprint keys, hard or soft, as text.
        pub require: Option<BTreeMap<String, String>>,
        /// The required isolation level, as read back by the block.
        pub isolation: Option<RequiredIsolation>,
    }

    /// One combination of sweep values.
    pub struct Point {
        /// `name=value` of all sweep axes, comma-separated; empty without a sweep.
        pub key: String,
        /// The same values as a map.
        pub parameters: BTreeMap<String, String>,
    }

    /// One arm.
    pub struct Arm {
        /// Its name in the run.
        pub name: String,
        /// Whether this is the baseline of all comparisons.
        pub baseline: bool,
        /// Set for the null arm, which runs a copy of the baseline's program.
        pub null: Option<bool>,
        /// Reference of the image with its programs.
        pub image: Option<String>,
    }

    /// The command for trials of one point and arm.
    pub struct Cell {
        /// Index into [`Wave::points`].
        pub point: usize,
        /// Index into [`Wave::arms`].
        pub arm: usize,
        /// The name of the build executed; only for arms with several builds.
        pub build: Option<String>,
        /// Reference of the image with the build's programs; absent: the arm's image.
        pub image: Option<String>,
        /// Program and arguments, passed verbatim except for port placeholders.
        pub argv: Vec<String>,
        /// Indices of the elements of `argv` in which `$(port.ROLE)` is replaced by a role's port.
        pub ports: Option<Vec<usize>>,
        /// The commands of the other roles, in role order.
        pub roles: Option<Vec<RoleCommand>>,
        /// Environment variables, passed verbatim.
        pub env: BTreeMap<String, String>,
        /// Effective parameters, recorded in each attempt.
        pub parameters: BTreeMap<String, String>,
    }

    /// Trials executed sequentially in one pod.
    pub struct Block {
        /// `w<wave>-b<block>`.
        pub id: String,
        /// The lease under which the block may run.
        pub lease: Option<Lease>,
        /// Cells executed once as warm-ups, before the measured slots.
        pub warmup: Option<Vec<usize>>,
        /// The cell of each measured slot.
        pub order: Vec<usize>,
    }

    /// The lease under which a block may run.
    pub struct Lease {
        /// The leased node.
        pub node: String,
        /// The fencing token, which increases with every acquisition.
        pub token: u64,
    }
}

/// The `schema` field of a wave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaId {
    /// The only version.
    #[default]
    #[serde(rename = "assay.dev/wave/v1alpha1")]
    V1Alpha1,
}

/// Purpose of a wave's blocks; used by the analysis and ignored by the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// To reach a verdict.
    Screen,
    /// To repeat a verdict on fresh blocks.
    Confirm,
    /// To search for loads; covers only some of the cells.
    Search,
}

/// The isolation levels that can be required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequiredIsolation {
    /// Exclusive CPUs for the block.
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
        check::record("workload.inherited", self.workload.inherited.as_ref())?;
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

impl Check for Inherited {
    fn check(&self) -> Result<(), Violation> {
        check::count("names", self.names.len(), 0, 4096)?;
        check::count("recorded", self.recorded.len(), 0, 64)?;
        for (i, name) in self.names.iter().enumerate() {
            check::length(&format!("names[{i}]"), name, 1, 1024)?;
        }
        for (i, name) in self.recorded.iter().enumerate() {
            check::length(&format!("recorded[{i}]"), name, 1, 128)?;
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
