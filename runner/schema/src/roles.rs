//! Trials of several processes, and arms from different images.

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::read::records;
use crate::resources::Resources;

records! {
    /// One kind of process of a trial that has several.
    pub struct Role {
        /// Its name in the template.
        pub name: String,
        /// Its output is the trial's result, and its end is the trial's.
        pub result: Option<bool>,
        /// How many of the block's CPUs it has for itself; 0: those that no role has for itself.
        pub cpus: Option<u64>,
        /// What must be seen before the next role starts; absent: nothing.
        pub readiness: Option<Readiness>,
        /// How long it may take to end after SIGTERM before it is killed.
        pub stop_grace_seconds: Option<f64>,
    }

    /// What must be seen of a role before the next one starts.
    pub struct Readiness {
        /// Where to look.
        pub on: ReadyOn,
        /// The text of a line, or the path of a file.
        pub text: Option<String>,
        /// How long that may take.
        pub timeout_seconds: f64,
    }

    /// What a role other than the one with the result runs.
    pub struct RoleCommand {
        /// Program and arguments.
        pub argv: Vec<String>,
        /// The elements of `argv` in which ports are named.
        pub ports: Option<Vec<usize>>,
    }

    /// An image that arms take their programs from.
    pub struct Image {
        /// Its tag or digest.
        pub reference: String,
        /// Folder of the copy: a program at `/p` in the image is at `root/p`.
        pub root: String,
        /// Absolute paths of the files and folders copied.
        pub files: Vec<String>,
    }

    /// What became of one process of a trial that has several.
    #[derive(Default)]
    pub struct RoleSeen {
        /// Its name in the template.
        pub name: String,
        /// What it did is said by the attempt itself.
        pub result: Option<bool>,
        /// The CPUs it was pinned to, as the kernel prints them.
        pub cpus: Option<String>,
        /// The block has too few CPUs to give it its own.
        pub shared: Option<bool>,
        /// The port that was its own.
        pub port: Option<u64>,
        /// Of the file executed.
        pub program_digest: Option<String>,
        /// From its launch until it was ready.
        pub ready_seconds: Option<f64>,
        /// The exit code, when it exited.
        pub exit_code: Option<i64>,
        /// The signal that ended it.
        pub signal: Option<i64>,
        /// It did not end in time after SIGTERM.
        pub killed: Option<bool>,
        /// The end of its output, of a trial that did not succeed.
        pub output_tail: Option<String>,
        /// What it used.
        pub resources: Option<Resources>,
    }
}

/// Where a role's readiness shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadyOn {
    /// It listens at its port.
    Port,
    /// A line of its output has a text.
    Line,
    /// A file exists.
    File,
}

/// Most processes that a trial can have.
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
