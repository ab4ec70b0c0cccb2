//! The folders that trials may write to, and their limit.
//!
//! In memory the kernel enforces the limit of the file system at once. A disk has no such limit, so that the runner
//! measures the used space at a short interval and ends the trial that exceeds it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_schema::result::Scalar;
use clap::{Args, ValueEnum};

use crate::confine;
use crate::log::log;

/// Interval of the measurements. At 10 GB/s a trial writes 200 MB meanwhile.
const INTERVAL: Duration = Duration::from_millis(20);
/// Limit of files outside of the scratch folders on kernels that cannot confine writing, in bytes. Argo's own files there are small.
const ELSEWHERE: u64 = 16 << 20;
/// Places outside of the scratch folders that a trial can write to unless it is confined: a file of the host, and Argo's
/// folder, in which it writes the exit code of the block.
const UNCONFINED: [&str; 2] = ["/dev/termination-log", "/var/run/argo/ctr"];

/// The soft key of the medium.
const MEDIUM: &str = "scratchMedium";
/// The soft key of the limit.
const BYTES: &str = "scratchBytes";
/// The soft key that says whether the kernel refuses writes elsewhere.
const CONFINED: &str = "writesConfined";

/// The kind of storage of the scratch folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Medium {
    /// A file system in memory, with a size.
    Memory,
    /// A folder on a disk of the node.
    Disk,
}

/// Where trials may write.
#[derive(Debug, Default, Args)]
pub(crate) struct ScratchArgs {
    /// Folder of the file system that trials may write to, and nowhere else; repeat it for further mounts of the same
    /// file system.
    #[arg(long = "scratch", value_name = "DIR", requires_all = ["bytes", "medium"])]
    pub(crate) folders: Vec<PathBuf>,
    /// Maximum number of bytes in it. A trial that exceeds it is ended and fails.
    #[arg(long = "scratch-bytes", value_name = "N", requires = "folders")]
    pub(crate) bytes: Option<u64>,
    /// Its kind of storage.
    #[arg(long = "scratch-medium", value_name = "MEDIUM", requires = "folders")]
    pub(crate) medium: Option<Medium>,
}

/// The scratch folders of a block, or none.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Option<Limited>);

#[derive(Debug)]
struct Limited {
    /// The first folder, by which the file system is measured.
    folder: PathBuf,
    bytes: u64,
    medium: Medium,
    confined: bool,
    /// Places that are measured because writing there is not refused.
    elsewhere: Vec<PathBuf>,
    /// Used bytes of the file system, and of the scratch folder, when the trial began.
    begun: Cell<(u64, u64)>,
    next: Cell<Instant>,
}

impl Scratch {
    /// Confines this process, and so the trials, to the folders.
    pub(crate) fn confine(args: &ScratchArgs) -> Result<Self> {
        let (Some(folder), Some(bytes), Some(medium)) = (args.folders.first(), args.bytes, args.medium) else {
            return Ok(Self(None));
        };
        let confined = confine::confine(&args.folders)?;
        let elsewhere = if confined { Vec::new() } else { UNCONFINED.map(PathBuf::from).to_vec() };
        if !confined {
            log(format_args!("warning: this kernel has no Landlock; the runner measures what trials write instead"));
        }
        if medium == Medium::Disk {
            ensure!(
                confine::forbid_reservations(),
                "cannot bound a disk: this kernel has no filter of system calls; use scratch.medium Memory"
            );
        }
        let limited = Limited {
            folder: folder.clone(),
            bytes,
            medium,
            confined,
            elsewhere,
            begun: Cell::default(),
            next: Cell::new(Instant::now()),
        };
        Ok(Self(Some(limited)))
    }

    /// Returns the keys of the fingerprint.
    pub(crate) fn keys(&self) -> BTreeMap<String, Scalar> {
        let Some(limited) = &self.0 else { return BTreeMap::new() };
        BTreeMap::from([
            (MEDIUM.to_owned(), format!("{:?}", limited.medium).into()),
            (BYTES.to_owned(), limited.bytes.into()),
            (CONFINED.to_owned(), limited.confined.into()),
        ])
    }

    /// Begins the measurement of a trial.
    pub(crate) fn begin(&self) {
        let Some(limited) = &self.0 else { return };
        if limited.medium == Medium::Disk {
            limited.begun.set((used(&limited.folder).unwrap_or_default(), held(&limited.folder)));
        }
        limited.next.set(Instant::now() + INTERVAL);
    }

    /// Limits a pause of the runner to the time until the next measurement. In memory, with confined writes, there is none.
    pub(crate) fn pause(&self, otherwise: Duration) -> Duration {
        match &self.0 {
            Some(limited) if limited.is_polled() => {
                otherwise.min(limited.next.get().saturating_duration_since(Instant::now()))
            }
            _ => otherwise,
        }
    }

    /// Returns the limit that the trial has reached, measured at most once per interval.
    pub(crate) fn reached_by_now(&self) -> Option<String> {
        let limited = self.0.as_ref().filter(|limited| limited.is_polled())?;
        let now = Instant::now();
        if now < limited.next.get() {
            return None;
        }
        limited.next.set(now + INTERVAL);
        limited.reached()
    }

    /// Returns the limit that the trial has reached at its end, before its files are removed.
    pub(crate) fn reached(&self) -> Option<String> {
        self.0.as_ref()?.reached()
    }
}

impl Limited {
    fn is_polled(&self) -> bool {
        self.medium == Medium::Disk || !self.elsewhere.is_empty()
    }

    fn reached(&self) -> Option<String> {
        let folder = self.folder.display();
        let limit = self.bytes >> 20;
        let remedy = "write less, or raise scratch.size of the template";
        if self.is_full() {
            let medium = format!("{:?}", self.medium).to_lowercase();
            return Some(format!("the trial reached its limit of {limit} MiB in {folder} ({medium}): {remedy}"));
        }
        let written = self.elsewhere.iter().find(|place| held(place) > ELSEWHERE)?;
        Some(format!(
            "the trial reached its limit of {} MiB in {}: write to {folder}",
            ELSEWHERE >> 20,
            written.display()
        ))
    }

    fn is_full(&self) -> bool {
        match self.medium {
            Medium::Memory => {
                rustix::fs::statvfs(&self.folder).is_ok_and(|facts| facts.f_bfree == 0 || facts.f_ffree == 0)
            }
            // The growth of the file system includes files that were deleted while open. It also includes writes of other
            // processes of the node, beside which a disk cannot be measured.
            Medium::Disk => {
                let (before, held) = self.begun.get();
                let grown = used(&self.folder).unwrap_or_default().saturating_sub(before);
                held + grown > self.bytes
            }
        }
    }
}

/// Returns the used bytes of a file system.
fn used(folder: &Path) -> Option<u64> {
    let facts = rustix::fs::statvfs(folder).ok()?;
    Some(facts.f_blocks.saturating_sub(facts.f_bfree) * facts.f_frsize)
}

/// Returns the bytes that the files of a folder, or a file, take.
fn held(path: &Path) -> u64 {
    let (mut open, mut bytes) = (vec![path.to_owned()], 0);
    while let Some(path) = open.pop() {
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        bytes += facts.blocks() * 512;
        if facts.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}
