//! Copies of programs for the null arm.
//!
//! A copy has its own page-cache pages and a different path, which changes the layout of the stack's first page. An arm
//! that runs a copy measures the size of such layout effects.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::{exec, output};

/// The copies made by a block; removed on drop.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Candidate folders for copies, in order of preference.
    places: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Copies by program path, or the reason of the failure.
    made: BTreeMap<String, Result<String, String>>,
}

impl Copies {
    /// Uses the temporary folder, or the folder of the attempts if the container has no temporary one.
    pub(crate) fn new(attempts: Option<&Path>) -> Self {
        let places = std::iter::once(std::env::temp_dir()).chain(attempts.map(Path::to_owned)).collect();
        Self { places, folders: Vec::new(), made: BTreeMap::new() }
    }

    /// Returns the path of the program's copy, making it on first use. The error is the reason why the trial cannot
    /// start.
    pub(crate) fn of(&mut self, program: &str, path: &str) -> Result<String, String> {
        let program = match exec::resolve(program, path) {
            Ok(program) if Path::new(&program).exists() => program,
            // The launcher reports a missing program.
            _ => return Ok(program.to_owned()),
        };
        if !self.made.contains_key(&program) {
            let made = self.make(Path::new(&program));
            self.made.insert(program.clone(), made);
        }
        self.made[&program].clone()
    }

    fn make(&mut self, program: &Path) -> Result<String, String> {
        let mut problems = Vec::new();
        for place in self.places.clone() {
            match self.copy_below(&place, program) {
                Ok(copy) => return Ok(copy.display().to_string()),
                Err(error) => problems.push(format!("to {}: {error}", place.display())),
            }
        }
        Err(format!("cannot copy {} for the null arm ({})", program.display(), problems.join("; ")))
    }

    fn copy_below(&mut self, place: &Path, program: &Path) -> io::Result<PathBuf> {
        let name = program.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // Opened first, so that no folder is created for an unreadable program.
        let source = File::open(program)?;
        // A folder per program, so that copies of equal names do not collide and retain their name.
        let folder = place.join(format!(".assay-null-{}", output::own_name()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        self.folders.push(folder.clone());
        let copy = folder.join(name);
        write_program(source, &copy)?;
        // The file system may be mounted noexec.
        access(&copy, Access::EXEC_OK)?;
        Ok(copy)
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn write_program(mut source: File, to: &Path) -> io::Result<()> {
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o700).open(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(Permissions::from_mode(0o700))?;
    // Flushed now, so that write-back does not disturb a trial.
    target.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &Path, name: &str, text: &str, mode: u32) -> String {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
        file.display().to_string()
    }

    fn copies(places: &[&Path]) -> Copies {
        Copies { places: places.iter().map(|&p| p.to_owned()).collect(), folders: Vec::new(), made: BTreeMap::new() }
    }

    #[test]
    fn program_is_copied_once_and_removed_after_the_block() {
        let (home, place) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let (one, two) = (program(home.path(), "a/tool", "one", 0o755), program(home.path(), "b/tool", "two", 0o555));
        let mut copies = copies(&[place.path()]);
        let copy = copies.of(&one, "").expect("copied");
        assert_ne!(copy, one);
        assert_eq!(fs::read_to_string(&copy).expect("readable"), "one");
        assert!(copy.ends_with("/tool"), "a program may look at its own name: {copy}");
        assert_eq!(copies.of(&one, "").as_ref(), Ok(&copy), "made once");
        assert_eq!(copies.of("tool", &format!("{}/a", home.path().display())).as_ref(), Ok(&copy), "found in PATH");
        let other = copies.of(&two, "").expect("copied");
        assert_eq!(fs::read_to_string(&other).expect("readable"), "two", "the same name is not the same program");
        drop(copies);
        assert_eq!(fs::read_dir(place.path()).expect("list").count(), 0, "nothing is left");
    }

    #[test]
    fn copy_falls_back_to_the_next_folder() {
        let (home, place) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let tool = program(home.path(), "tool", "text", 0o755);
        let copy = copies(&[Path::new("/proc/nowhere"), place.path()]).of(&tool, "").expect("copied");
        assert!(Path::new(&copy).starts_with(place.path()), "{copy}");
        let error = copies(&[Path::new("/proc/nowhere")]).of(&tool, "").expect_err("no place");
        assert!(error.contains(&tool) && error.contains("/proc/nowhere"), "{error}");
    }

    #[test]
    fn missing_program_is_reported_by_the_launcher() {
        assert_eq!(copies(&[]).of("/none/tool", ""), Ok("/none/tool".to_owned()));
    }

    #[test]
    fn unreadable_program_is_an_error() {
        let (home, place) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        // A folder cannot be read as a file, not even by root.
        let tool = home.path().display().to_string();
        let error = copies(&[place.path()]).of(&tool, "").expect_err("refused");
        assert!(error.contains("for the null arm") && error.contains(&tool), "{error}");
    }
}
