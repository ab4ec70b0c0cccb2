//! Information of the operating system about files and this process.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The kind of file system that `folder` is on: its name, or its number where the name is not known here.
///
/// # Errors
///
/// When the system refuses.
pub fn file_system(folder: &Path) -> io::Result<String> {
    Ok(match statfs(folder)?.f_type as u64 & 0xffff_ffff {
        0xef53 => "ext".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x794c_7630 => "overlay".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        other => format!("{other:#x}"),
    })
}

/// Bytes that may still be written to the file system of `folder`.
///
/// # Errors
///
/// When the system refuses.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let answer = statfs(folder)?;
    // Some kernels leave the second out.
    let block = if answer.f_frsize == 0 { answer.f_bsize } else { answer.f_frsize };
    Ok(answer.f_bavail.saturating_mul(block as u64))
}

fn statfs(folder: &Path) -> io::Result<libc::statfs> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let mut answer = std::mem::MaybeUninit::uninit();
    // SAFETY: `path` is null-terminated, and `answer` is large enough.
    if unsafe { libc::statfs(path.as_ptr(), answer.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it wrote the whole of it.
    Ok(unsafe { answer.assume_init() })
}

/// Bytes that this process has transferred through system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes handed to the system, whether or not they reached a disk.
    pub written: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes asked from the system, whether or not they came from a disk.
    pub read: u64,
    /// Calls that read.
    pub reads: u64,
}

impl Traffic {
    /// Until now. `None` where the system does not report it.
    #[must_use]
    pub fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/io").ok()?;
        let number = |name: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
        };
        let (written, writes) = (number("wchar")?, number("syscw")?);
        Some(Self { written, writes, read: number("rchar")?, reads: number("syscr")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_file_system_with_some_room() {
        let folder = std::env::temp_dir();
        assert!(!file_system(&folder).unwrap().is_empty());
        assert!(free_bytes(&folder).unwrap() > 0);
        assert!(file_system(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn written_bytes_are_counted() {
        let Some(before) = Traffic::now() else { return };
        let path = std::env::temp_dir().join(format!("insert-diskann-traffic-{}", std::process::id()));
        fs::write(&path, [0; 5000]).unwrap();
        let after = Traffic::now().unwrap();
        assert!(after.written >= before.written + 5000 && after.writes > before.writes, "{before:?} {after:?}");
        fs::remove_file(path).unwrap();
    }
}
