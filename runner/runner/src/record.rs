//! Records each attempt exactly once, atomically and without overwriting another.
//!
//! A keeper stores each attempt where trials cannot modify it, before the next trial starts. Without a keeper attempts
//! are written to a folder, to which trials of the same user can write too. This mode is for tests and for trying out a
//! block.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use assay_schema::Attempt;
use assay_schema::attempt::MOST_ATTEMPT;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::keeper::Keeper;
use crate::signals::Signals;
use crate::stop::Stop;

/// Destination of attempts.
#[derive(Debug)]
pub(crate) enum Record {
    Folder(Folder),
    Keeper(Keeper),
}

impl Record {
    /// The folder, usable for temporary files in containers without a temporary folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(&folder.0),
            Self::Keeper(_) => None,
        }
    }

    /// The reason why a trial must not run, if it terminated an earlier execution of the block.
    pub(crate) fn ended_before(&self, trial: &str) -> Option<&str> {
        match self {
            Self::Folder(_) => None,
            Self::Keeper(keeper) => keeper.ended.get(trial).map(String::as_str),
        }
    }

    /// Announces the start of a trial, with the attempt to record if the runner dies during it.
    pub(crate) fn start(&mut self, attempt: &Attempt, signals: &Signals) -> Result<(), Stop> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Keeper(keeper) => keeper.keep("started", attempt, signals),
        }
    }

    /// Records an attempt. It is durable on return.
    pub(crate) fn write(&mut self, attempt: &Attempt, signals: &Signals) -> Result<(), Stop> {
        match self {
            Self::Folder(folder) => folder.write(attempt).map_err(Stop::Runner),
            Self::Keeper(keeper) => keeper.keep("attempt", attempt, signals),
        }
    }

    /// Reports the end of the block.
    pub(crate) fn end(&mut self, done: &Result<(), Stop>, signals: &Signals) {
        if let Self::Keeper(keeper) = self {
            keeper.end(done, signals);
        }
    }
}

/// Returns an error text if the attempt exceeds the size limit.
pub(crate) fn too_large(attempt: &Attempt) -> Option<String> {
    // An attempt that cannot be encoded fails when it is recorded.
    let size = serde_json::to_vec(attempt).map_or(0, |text| text.len());
    (size > MOST_ATTEMPT).then(|| {
        format!(
            "with its result the attempt is {size} bytes, and {MOST_ATTEMPT} are allowed: report fewer samples, or \
             fewer metrics"
        )
    })
}

/// The folder of a block's attempts.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the folder if necessary, and rejects one that contains attempts of these trials.
    pub(crate) fn open<'a>(folder: &Path, trials: impl Iterator<Item = &'a str>) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let folder = Self(folder.to_owned());
        for trial in trials {
            let file = folder.file(trial);
            if file.exists() {
                bail!("{} exists already; attempts are never overwritten; choose another folder", file.display());
            }
        }
        Ok(folder)
    }

    /// Writes one attempt atomically for readers of `*.json`.
    pub(crate) fn write(&self, attempt: &Attempt) -> Result<()> {
        let file = self.file(&attempt.trial);
        let temporary = self.0.join(format!(".{}.{}.tmp", attempt.trial, std::process::id()));
        let mut text = serde_json::to_vec(attempt).context("cannot encode the attempt as JSON")?;
        text.push(b'\n');
        let written = write_synced(&temporary, &text).and_then(|()| publish(&temporary, &file));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.with_context(|| format!("cannot write the attempt {}", file.display()))
    }

    fn file(&self, trial: &str) -> PathBuf {
        self.0.join(format!("{trial}.json"))
    }
}

fn write_synced(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(file)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Renames a file unless the target exists.
fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some network file systems do not support the flag.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/fixtures/valid/attempt-succeeded.json");
        assay_schema::read(&fs::read(file).expect("read")).expect("a valid fixture")
    }

    #[test]
    fn attempt_is_written_once() {
        let temporary = tempfile::tempdir().expect("folder");
        let path = temporary.path().join("new/folder");
        let attempt = attempt();
        let folder = Folder::open(&path, [attempt.trial.as_str()].into_iter()).expect("empty");
        folder.write(&attempt).expect("written");
        let text = fs::read(path.join("w000-b0000-s00004.json")).expect("there");
        assert_eq!(assay_schema::read::<Attempt>(&text).expect("valid"), attempt);

        let error = folder.write(&Attempt { slot: 9, ..attempt.clone() }).expect_err("taken");
        assert!(format!("{error:#}").contains("w000-b0000-s00004.json"), "{error:#}");
        assert_eq!(fs::read(path.join("w000-b0000-s00004.json")).expect("there"), text, "unchanged");
        assert_eq!(fs::read_dir(&path).expect("list").count(), 1, "no temporary file is left");

        let error = Folder::open(&path, [attempt.trial.as_str()].into_iter()).expect_err("not empty");
        assert!(error.to_string().contains("never overwritten"), "{error}");
    }
}
