//! Digests of a block's programs, to detect modifications by trials.
//!
//! Trials of one arm may have write access to another arm's program. A modified program is not measured. Before every
//! trial the file's metadata is compared, and the contents are read again after any change.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::exec;

/// Maximum size of a program.
const LARGEST_PROGRAM: u64 = 1 << 30;

/// The programs of a block.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<(String, String), Program>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    file: Option<String>,
    facts: Option<Facts>,
    digest: Option<String>,
    /// Whether metadata is sufficient evidence: the file was unmodified for a while before it was read, and its file
    /// system records all changes. Two changes in quick succession may have the same time.
    settled: bool,
}

/// Metadata that changes with the file. Programs cannot set the inode's change time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// Minimum age of the last change, far above the granularity of file times.
const SETTLED: Duration = Duration::from_secs(1);

impl Facts {
    fn settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        self.changed.0.saturating_add_unsigned(SETTLED.as_secs()) < now.try_into().unwrap_or(i64::MAX)
    }
}

impl Programs {
    /// Records a program's current state; `path` is the PATH for names without a slash.
    pub(crate) fn note(&mut self, program: &str, path: &str) {
        self.0
            .entry((program.to_owned(), path.to_owned()))
            .or_insert_with_key(|(program, path)| Program::read(program, path));
    }

    /// Returns the digest of an unmodified program, or the reason why its trial cannot start.
    pub(crate) fn check(&mut self, program: &str, path: &str) -> Result<Option<String>, String> {
        let Some(before) = self.0.get_mut(&(program.to_owned(), path.to_owned())) else {
            return Err(format!("the program {program} is not one that the block started with"));
        };
        let file = find(program, path);
        if before.settled && file == before.file && facts(file.as_deref()) == before.facts {
            return Ok(before.digest.clone());
        }
        let now = Program::read(program, path);
        if (&now.file, &now.digest) == (&before.file, &before.digest) && now.digest.is_some() {
            *before = now;
            return Ok(before.digest.clone());
        }
        Err(format!(
            "the program {program} changed after the block began: it was {before} and is {now}; a trial of this block may write \
             there, so make it read-only to the user that trials run as"
        ))
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, &self.digest) {
            (None, _) => f.write_str("not there"),
            (Some(file), None) => write!(f, "{file}, which cannot be read"),
            (Some(file), Some(digest)) => write!(f, "{file} with {digest}"),
        }
    }
}

impl Program {
    fn read(program: &str, path: &str) -> Self {
        let file = find(program, path);
        let facts = facts(file.as_deref());
        let shown = file.as_deref().is_none_or(|file| times_show_changes(Path::new(file)));
        let settled = shown && facts.as_ref().is_none_or(Facts::settled);
        let digest = file.as_deref().and_then(|file| digest(Path::new(file)));
        Self { file, facts, digest, settled }
    }
}

fn find(program: &str, path: &str) -> Option<String> {
    exec::resolve(program, path).ok().filter(|file| Path::new(file).exists())
}

fn facts(file: Option<&str>) -> Option<Facts> {
    let of = |file: Metadata| Facts {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        changed: (file.ctime(), file.ctime_nsec()),
    };
    fs::metadata(file?).ok().map(of)
}

fn digest(file: &Path) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_PROGRAM {
        return None;
    }
    contents(file)
}

/// Returns the digest of a file of any size.
pub(crate) fn contents(file: &Path) -> Option<String> {
    let mut digest = blake3::Hasher::new();
    digest.update_reader(File::open(file).ok()?).ok()?;
    Some(format!("blake3:{}", digest.finalize().to_hex()))
}

/// Whether every change on this file system updates the file's times. Without write-back to disk, the kernel does not
/// detect writes through a mapping to pages that were read before.
pub(crate) fn times_show_changes(path: &Path) -> bool {
    // tmpfs, ramfs and hugetlbfs (linux/magic.h).
    const IN_MEMORY: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    let kind = rustix::fs::statfs(path).ok().and_then(|of| u64::try_from(of.f_type).ok());
    kind.is_some_and(|kind| !IN_MEMORY.contains(&kind))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, name: &str, text: &str) -> String {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("set");
        file.display().to_string()
    }

    #[test]
    fn changed_program_is_reported_and_unchanged_program_runs() {
        type Change = fn(&Path);
        let cases: [(&str, Change, bool); 6] = [
            ("nothing happened", |_| (), true),
            (
                "its mode was changed and restored",
                |file| fs::set_permissions(file, Permissions::from_mode(0o755)).expect("set"),
                true,
            ),
            ("it was rewritten in place", |file| fs::write(file, "two").expect("written"), false),
            (
                "it was replaced",
                |file| {
                    fs::write(file.with_extension("new"), "two").expect("written");
                    fs::rename(file.with_extension("new"), file).expect("renamed");
                },
                false,
            ),
            (
                "it was replaced by a link",
                |file| {
                    fs::remove_file(file).expect("removed");
                    std::os::unix::fs::symlink("/bin/true", file).expect("linked");
                },
                false,
            ),
            ("it was removed", |file| fs::remove_file(file).expect("removed"), false),
        ];
        for (name, change, fine) in cases {
            let folder = tempfile::tempdir().expect("a folder");
            let file = program(folder.path(), "tool", "one");
            let mut programs = Programs::default();
            programs.note(&file, "");
            let before = programs.check(&file, "").expect("unchanged");
            change(Path::new(&file));
            match programs.check(&file, "") {
                Ok(after) => assert!(fine && after == before, "{name}"),
                Err(reason) => {
                    assert!(!fine && reason.contains(&file) && reason.contains("changed after"), "{name}: {reason}")
                }
            }
        }
    }

    /// Modifies a file through a mapping, on pages that were read before.
    pub(crate) fn write_mapped(file: &Path, text: &[u8]) {
        use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
        let opened = File::options().read(true).write(true).open(file).expect("there");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing.
        let memory = unsafe { mmap(std::ptr::null_mut(), text.len(), protection, flags, &opened, 0) }.expect("mapped");
        // SAFETY: the mapping is as long as the text, which is no longer than the file.
        unsafe {
            std::hint::black_box(memory.cast::<u8>().read_volatile());
            memory.cast::<u8>().copy_from(text.as_ptr(), text.len());
            munmap(memory, text.len()).expect("unmapped");
        }
    }

    #[test]
    fn program_changed_through_a_mapping_is_reported() {
        for place in [std::env::temp_dir(), "/dev/shm".into()] {
            let Ok(folder) = tempfile::tempdir_in(place) else { continue };
            let file = program(folder.path(), "tool", "one");
            std::thread::sleep(SETTLED * 2);
            let mut programs = Programs::default();
            programs.note(&file, "");
            programs.check(&file, "").expect("unchanged");
            write_mapped(Path::new(&file), b"two");
            let reason = programs.check(&file, "").expect_err("changed");
            assert!(reason.contains("changed after"), "{reason}");
        }
    }

    #[test]
    fn program_that_shadows_another_in_path_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        program(folder.path(), "b/tool", "one");
        fs::create_dir(folder.path().join("a")).expect("a folder");
        let path = format!("{0}/a:{0}/b", folder.path().display());
        let mut programs = Programs::default();
        programs.note("tool", &path);
        programs.check("tool", &path).expect("unchanged").expect("a digest");
        program(folder.path(), "a/tool", "one");
        let reason = programs.check("tool", &path).expect_err("another file");
        assert!(reason.contains("/b/tool") && reason.contains("/a/tool"), "{reason}");
    }

    #[test]
    fn missing_program_is_reported_by_the_launcher() {
        let mut programs = Programs::default();
        programs.note("/none/tool", "");
        assert_eq!(programs.check("/none/tool", ""), Ok(None));
    }
}
