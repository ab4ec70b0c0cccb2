//! The steps record: commands around the trials of a run on this machine, outside of every measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::read::records;

/// Maximum time of a step, in seconds.
pub const LONGEST_STEP: f64 = 86_400.0;

records! {
    /// The steps of all cells of a run.
    pub struct Steps {
        /// The schema id of the format.
        pub schema: SchemaId,
        /// Steps are killed after this many seconds.
        pub timeout_seconds: f64,
        /// Variables of the runner's own environment that setup and cleanup get; absent: none.
        pub inherited: Option<Vec<String>>,
        /// The steps of each point and arm.
        pub cells: Vec<CellSteps>,
    }

    /// The steps of one point and arm, each a program with its arguments; an absent one is not run.
    pub struct CellSteps {
        /// Key of the point.
        pub point: String,
        /// Name of the arm.
        pub arm: String,
        /// Variables of setup and cleanup.
        pub env: BTreeMap<String, String>,
        /// Once, before the first trial of the run.
        pub setup: Option<Vec<String>>,
        /// Directly before every trial.
        pub prepare: Option<Vec<String>>,
        /// Directly after every trial that was started.
        pub conclude: Option<Vec<String>>,
        /// Once, after the last trial of the run.
        pub cleanup: Option<Vec<String>>,
    }
}

/// The `schema` field of steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaId {
    /// The only version.
    #[default]
    #[serde(rename = "assay.dev/steps/v1alpha1")]
    V1Alpha1,
}

impl Check for Steps {
    fn check(&self) -> Result<(), Violation> {
        check::positive("timeoutSeconds", self.timeout_seconds)?;
        check::within("timeoutSeconds", self.timeout_seconds, 0.0, LONGEST_STEP)?;
        let inherited = self.inherited.as_deref().unwrap_or_default();
        check::count("inherited", inherited.len(), 0, 4096)?;
        for (i, name) in inherited.iter().enumerate() {
            check::length(&format!("inherited[{i}]"), name, 1, 1024)?;
        }
        check::list("cells", &self.cells, 1, 100_000)
    }
}

impl Check for CellSteps {
    fn check(&self) -> Result<(), Violation> {
        check::length("point", &self.point, 0, 4096)?;
        check::length("arm", &self.arm, 1, 63)?;
        check::parameters("env", &self.env)?;
        for (name, step) in [
            ("setup", &self.setup),
            ("prepare", &self.prepare),
            ("conclude", &self.conclude),
            ("cleanup", &self.cleanup),
        ] {
            check::count(name, step.as_ref().map_or(1, Vec::len), 1, 256)?;
        }
        Ok(())
    }
}
