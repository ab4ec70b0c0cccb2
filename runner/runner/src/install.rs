//! Copies the running program to a folder that another container mounts.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::log::log;
use anyhow::{Context, Result};

/// Installs this program as `folder/assay-runner`, mode 0755. The file appears atomically.
pub(crate) fn install(folder: &Path) -> Result<()> {
    let target = folder.join("assay-runner");
    let temporary = folder.join(format!(".assay-runner.{}.tmp", std::process::id()));
    let copied = copy(&temporary).and_then(|()| fs::rename(&temporary, &target));
    if copied.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    copied.with_context(|| format!("cannot install to {}", target.display()))?;
    log(format_args!("installed {}", target.display()));
    Ok(())
}

fn copy(to: &Path) -> io::Result<()> {
    let mut source = fs::File::open("/proc/self/exe")?;
    let mut target = OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(to)?;
    io::copy(&mut source, &mut target)?;
    // The mode given to open is subject to the umask.
    target.set_permissions(fs::Permissions::from_mode(0o755))?;
    target.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_replaces_an_older_copy() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("assay-runner"), "old").expect("write");
        install(folder.path()).expect("installs");
        let copy = fs::read(folder.path().join("assay-runner")).expect("read");
        assert_eq!(copy, fs::read("/proc/self/exe").expect("read"));
        let mode = fs::metadata(folder.path().join("assay-runner")).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 1, "no temporary file is left");
    }

    #[test]
    fn install_error_names_the_target() {
        let error = install(Path::new("/proc/nowhere")).expect_err("cannot write there");
        assert!(format!("{error:#}").contains("/proc/nowhere/assay-runner"), "{error:#}");
    }
}
