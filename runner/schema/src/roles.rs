//! Multi-process trials and arms from different images.

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::read::records;
use crate::resources::Resources;

records! {
    /// One process kind of a multi-process trial.
    pub struct Role {
        /// Its name in the template.
        pub name: String,
        /// Set for the role whose output is the trial's result and whose exit ends the trial.
        pub result: Option<bool>,
        /// Number of the block's CPUs reserved for it; 0: it shares the unreserved ones.
        pub cpus: Option<u64>,
        /// Readiness condition for starting the next role; absent: start it immediately.
        pub readiness: Option<Readiness>,
        /// Time allowed between SIGTERM and SIGKILL.
        pub stop_grace_seconds: Option<f64>,
    }

    /// The readiness condition of a role.
    pub struct Readiness {
        /// The kind of condition.
        pub on: ReadyOn,
        /// Text of a line, or path of a file.
        pub text: Option<String>,
        /// Readiness timeout in seconds.
        pub timeout_seconds: f64,
    }

    /// The command of a role without the result.
    pub struct RoleCommand {
        /// Program and arguments.
        pub argv: Vec<String>,
        /// Indices of the elements of `argv` with port placeholders.
        pub ports: Option<Vec<usize>>,
    }

    /// An image from which arms take their programs.
    pub struct Image {
        /// Tag or digest reference.
        pub reference: String,
        /// Folder of the copy. A program at `/p` in the image is at `root/p`.
        pub root: String,
        /// Absolute paths of the copied files and folders.
        pub files: Vec<String>,
    }

    /// Observed state of one process of a multi-process trial.
    #[derive(Default)]
    pub struct RoleSeen {
        /// Its name in the template.
        pub name: String,
        /// Set for the role with the result; the other fields are then in the attempt itself.
        pub result: Option<bool>,
        /// The CPUs to which it was pinned, in the kernel's list format.
        pub cpus: Option<String>,
        /// Set if the block has too few CPUs to reserve any for this role.
        pub shared: Option<bool>,
        /// The port assigned to it.
        pub port: Option<u64>,
        /// Digest of the executed file.
        pub program_digest: Option<String>,
        /// Time from launch to readiness.
        pub ready_seconds: Option<f64>,
        /// The exit code, when it exited.
        pub exit_code: Option<i64>,
        /// The signal that terminated it.
        pub signal: Option<i64>,
        /// Set if it did not exit in time after SIGTERM.
        pub killed: Option<bool>,
        /// Tail of its output; only for trials that did not succeed.
        pub output_tail: Option<String>,
        /// Its resource usage.
        pub resources: Option<Resources>,
    }
}

/// Kinds of readiness conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadyOn {
    /// The role listens on its port.
    Port,
    /// A line of its output contains the text.
    Line,
    /// The file exists.
    File,
}

/// Maximum number of processes per trial.
pub(crate) const MOST_ROLES: usize = 8;

impl Check for Role {
    fn check(&self) -> Result<(), Violation> {
        check::length("name", &self.name, 1, 32)?;
        check::require(self.cpus.unwrap_or(0) <= 1024, "cpus", || "more than 1024".to_owned())?;
        if let Some(readiness) = &self.readiness {
            check::length("readiness.text", readiness.text.as_deref().unwrap_or("-"), 1, 4096)?;
            check::positive("readiness.timeoutSeconds", readiness.timeout_seconds)?;
        }
        check::not_negative("stopGraceSeconds", self.stop_grace_seconds.unwrap_or(0.0))
    }
}

impl Check for RoleCommand {
    fn check(&self) -> Result<(), Violation> {
        check::count("argv", self.argv.len(), 1, 256)?;
        check::count("ports", self.ports.as_ref().map_or(0, Vec::len), 0, 256)
    }
}

impl Check for Image {
    fn check(&self) -> Result<(), Violation> {
        check::length("reference", &self.reference, 1, 512)?;
        check::length("root", &self.root, 1, 4096)?;
        check::count("files", self.files.len(), 1, 256)?;
        self.files.iter().enumerate().try_for_each(|(i, file)| check::length(&format!("files[{i}]"), file, 1, 4096))
    }
}

impl Check for RoleSeen {
    fn check(&self) -> Result<(), Violation> {
        check::length("name", &self.name, 1, 32)?;
        check::length("cpus", self.cpus.as_deref().unwrap_or(""), 0, 1024)?;
        check::require((1..=65_535).contains(&self.port.unwrap_or(1)), "port", || "no port".to_owned())?;
        check::length("programDigest", self.program_digest.as_deref().unwrap_or(""), 0, 128)?;
        check::not_negative("readySeconds", self.ready_seconds.unwrap_or(0.0))?;
        check::length("outputTail", self.output_tail.as_deref().unwrap_or(""), 0, 4096)?;
        check::record("resources", self.resources.as_ref())
    }
}
