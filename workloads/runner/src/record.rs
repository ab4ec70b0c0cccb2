//! Writes attempts: each once, whole, and never over another.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use assay_schema::Attempt;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// The folder for a block's attempts.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder if need be, and refuses one that already holds one of these trials.
    pub(crate) fn open<'a>(folder: &Path, trials: impl Iterator<Item = &'a str>) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let folder = Self(folder.to_owned());
        for trial in trials {
            let file = folder.file(trial);
            if file.exists() {
                bail!("{} exists already; attempts are never overwritten, so give another folder", file.display());
            }
        }
        Ok(folder)
    }

    /// Writes one attempt. Whoever lists `*.json` sees it whole or not at all.
    pub(crate) fn write(&self, attempt: &Attempt) -> Result<()> {
        let file = self.file(&attempt.trial);
        let temporary = self.0.join(format!(".{}.{}.tmp", attempt.trial, std::process::id()));
        let mut text = serde_json::to_vec(attempt).context("cannot express the attempt as JSON")?;
        text.push(b'\n');
        let written = write_synced(&temporary, &text).and_then(|()| publish(&temporary, &file));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.with_context(|| format!("cannot write the attempt {}", file.display()))
    }

    /// Where the attempts go.
    pub(crate) fn path(&self) -> &Path {
        &self.0
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

/// Gives a file its name unless the name is taken.
fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some network file systems do not know the flag.
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
    fn an_attempt_is_written_once() {
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
