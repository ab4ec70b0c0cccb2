//! Reads files of /proc and /sys, below a root that tests replace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpus::CpuSet;

/// Access to the machine's files. Unreadable values are absent.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    root: PathBuf,
}

impl Host {
    /// The real machine.
    pub(crate) fn real() -> Self {
        Self { root: PathBuf::from("/") }
    }

    #[cfg(test)]
    pub(crate) fn fake(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the location of an absolute path.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// A file's text, trimmed; absent if empty.
    pub(crate) fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let word = text.trim();
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// A file's integer.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.word(path)?.parse().ok()
    }

    /// One field of /proc/meminfo, in bytes.
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

    /// The online CPUs.
    pub(crate) fn online(&self) -> Option<CpuSet> {
        self.cpus("/sys/devices/system/cpu/online").filter(|cpus| !cpus.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A tree of small files that simulates a machine.

    use std::fs;

    use super::Host;

    /// A simulated machine; its files are removed on drop.
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
