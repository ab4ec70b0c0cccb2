//! Trials of several processes, and arms from different images.

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::resources::Resources;

/// One kind of process of a trial that has several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Role {
    /// Its name in the template.
    pub name: String,
    /// Its output is the trial's result, and its end is the trial's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub result: Option<bool>,
    /// How many of the block's CPUs it has for itself; 0: those that no role has for itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub cpus: Option<u64>,
    /// What must be seen before the next role starts; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub readiness: Option<Readiness>,
    /// How long it may take to end after SIGTERM before it is killed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub stop_grace_seconds: Option<f64>,
}

/// What must be seen of a role before the next one starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Readiness {
    /// Where to look.
    pub on: ReadyOn,
    /// The text of a line, or the path of a file.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub text: Option<String>,
    /// How long that may take.
    pub timeout_seconds: f64,
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

/// What a role other than the one with the result runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RoleCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The elements of `argv` in which ports are named.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub ports: Option<Vec<usize>>,
}

/// An image that arms take their programs from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Image {
    /// Its tag or digest.
    pub reference: String,
    /// Folder of the copy: a program at `/p` in the image is at `root/p`.
    pub root: String,
    /// Absolute paths of the files and folders copied.
    pub files: Vec<String>,
}

/// What became of one process of a trial that has several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleSeen {
    /// Its name in the template.
    pub name: String,
    /// What it did is said by the attempt itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub result: Option<bool>,
    /// The CPUs it was pinned to, as the kernel prints them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub cpus: Option<String>,
    /// The block has too few CPUs to give it its own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub shared: Option<bool>,
    /// The port that was its own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub port: Option<u64>,
    /// Of the file executed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub program_digest: Option<String>,
    /// From its launch until it was ready.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub ready_seconds: Option<f64>,
    /// The exit code, when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub exit_code: Option<i64>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub signal: Option<i64>,
    /// It did not end in time after SIGTERM.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub killed: Option<bool>,
    /// The end of its output, of a trial that did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub output_tail: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub resources: Option<Resources>,
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
        self.resources.as_ref().map_or(Ok(()), |resources| resources.check().map_err(|v| v.within("resources")))
    }
}

/// Checks every record of a list.
pub(crate) fn all<T: Check>(field: &str, list: Option<&Vec<T>>, most: usize) -> Result<(), Violation> {
    let list = list.map_or(&[][..], Vec::as_slice);
    check::count(field, list.len(), 0, most)?;
    list.iter().enumerate().try_for_each(|(i, item)| item.check().map_err(|v| v.within(&format!("{field}[{i}]"))))
}

crate::read::objects!(Role, Readiness, RoleCommand, Image, RoleSeen);
