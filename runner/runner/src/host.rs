//! Reads files of /proc and /sys, below a root that tests replace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpus::CpuSet;

/// The machine as its files show it. Whatever cannot be read is absent.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    root: PathBuf,
}

impl Host {
    /// The machine this runs on.
    pub(crate) fn real() -> Self {
        Self { root: PathBuf::from("/") }
    }

    #[cfg(test)]
    pub(crate) fn fake(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where an absolute path lies.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// A file's text without surrounding white space; absent if nothing else is in it.
    pub(crate) fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let word = text.trim();
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// A file's whole number.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.word(path)?.parse().ok()
    }

    /// One figure of /proc/meminfo, in bytes.
    pub(crate) fn memory(&self, name: &str) -> Option<u64> {
        let text = self.text("/proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    }

    /// A file's list of CPUs.
    pub(crate) fn cpus(&self, path: impl AsRef<Path>) -> Option<CpuSet> {
        CpuSet::parse(&self.text(path)?)
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The CPUs that are switched on.
    pub(crate) fn online(&self) -> Option<CpuSet> {
        self.cpus("/sys/devices/system/cpu/online").filter(|cpus| !cpus.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A tree of small files that stands for a machine.

    use std::fs;

    use super::Host;

    /// A machine made of files; it vanishes when dropped.
    pub(crate) struct FakeHost {
        folder: tempfile::TempDir,
    }

    impl FakeHost {
        pub(crate) fn new(files: &[(&str, &str)]) -> Self {
            let fake = Self { folder: tempfile::tempdir().expect("a folder") };
            for (path, text) in files {
                fake.write(path, text);
            }
            fake
        }

        pub(crate) fn write(&self, path: &str, text: &str) {
            let path = self.host().path(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        pub(crate) fn host(&self) -> Host {
            Host::fake(self.folder.path())
        }
    }
}
