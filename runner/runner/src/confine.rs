//! Confines this process and all its children to the folders that trials may write to.
//!
//! The kubelet polls the storage of pods, so that a program at the full speed of a disk can write tens of gigabytes
//! before it is evicted. Landlock makes the kernel refuse a write elsewhere: to the termination log, which is a file of
//! the host, to folders that other containers of the pod use, and to the descriptors of processes outside of this domain,
//! such as the container's own standard output. The trials inherit the confinement from the runner.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags};

/// Rights of Landlock that create or change contents of files (include/uapi/linux/landlock.h).
mod right {
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    /// Removing and making entries of every kind: REMOVE_DIR to MAKE_SYM.
    pub(super) const ENTRIES: u64 = 0x1ff << 4;
    /// Renaming and linking between folders. Without it the kernel refuses them everywhere.
    pub(super) const REFER: u64 = 1 << 13;
    pub(super) const TRUNCATE: u64 = 1 << 14;
}

/// The first version in which files can be renamed between folders.
const OLDEST: i64 = 2;
/// The first version in which truncation is a right.
const WITH_TRUNCATE: i64 = 3;
/// Maximum depth of folders with devices, such as /dev/vfio/devices.
const DEEPEST: usize = 4;

/// Kernel interfaces of which writing takes no storage of the node. The memory behind /dev/shm is bounded by the
/// container runtime, and counts for the container.
const KERNELS: [&str; 5] = ["/proc", "/sys", "/dev/shm", "/dev/mqueue", "/dev/pts"];

#[repr(C)]
struct Ruleset {
    handled_access_fs: u64,
}

#[repr(C, packed)]
struct Beneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// Limits writing to `folders`, to devices and to interfaces of the kernel, from now on and for good. Returns false if
/// the kernel or the container's seccomp profile does not offer Landlock, in which case nothing is limited.
pub(crate) fn confine(folders: &[PathBuf]) -> Result<bool> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call only returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, VERSION) };
    if version < OLDEST {
        return Ok(false);
    }
    let file = right::WRITE_FILE | if version >= WITH_TRUNCATE { right::TRUNCATE } else { 0 };
    let all = file | right::ENTRIES | right::REFER;
    let attributes = Ruleset { handled_access_fs: all };
    // SAFETY: the attributes outlive the call, which reads as many bytes as the size says.
    let ruleset =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size_of::<Ruleset>(), 0) };
    let number = i32::try_from(ruleset).unwrap_or(-1);
    if number < 0 {
        return Err(io::Error::last_os_error()).context("cannot make a Landlock ruleset");
    }
    // SAFETY: the kernel has just opened it for this process.
    let ruleset = unsafe { OwnedFd::from_raw_fd(number) };
    for folder in folders {
        allow(&ruleset, folder, all).with_context(|| format!("cannot allow writing to {}", folder.display()))?;
    }
    // An interface or a device that is missing cannot be written to.
    for path in KERNELS {
        let _ = allow(&ruleset, Path::new(path), if path.starts_with("/dev/") { all } else { file });
    }
    for device in devices() {
        let _ = allow(&ruleset, &device, file);
    }
    rustix::thread::set_no_new_privs(true).context("cannot renounce further privileges")?;
    // SAFETY: the call takes two numbers.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    if done != 0 {
        return Err(io::Error::last_os_error()).context("cannot confine writing with Landlock");
    }
    Ok(true)
}

fn allow(ruleset: &OwnedFd, path: &Path, rights: u64) -> Result<()> {
    const PATH_BENEATH: libc::c_uint = 1;
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let rule = Beneath { allowed_access: rights, parent_fd: opened.as_raw_fd() };
    // SAFETY: the rule outlives the call.
    let done =
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0) };
    if done != 0 { Err(io::Error::last_os_error().into()) } else { Ok(()) }
}

/// Returns the devices below /dev. The folder itself also has the termination log, which is a file of the host.
fn devices() -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![(PathBuf::from("/dev"), 0)], Vec::new());
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_char_device() || kind.is_block_device() {
                found.push(entry.path());
            } else if kind.is_dir() && depth < DEEPEST && !KERNELS.iter().any(|path| entry.path() == Path::new(path)) {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Makes fallocate(2) and io_uring unavailable to this process and its children: they would reserve more of a disk at
/// once than a monitor that measures every few milliseconds can bound. Programs fall back to writing, as on file systems
/// without fallocate. Returns false if filters are not available.
pub(crate) fn forbid_reservations() -> bool {
    rustix::thread::set_no_new_privs(true).is_ok() && filter::install()
}

/// A filter of system calls. The kernel remembers that all other calls are always allowed, so that they take no longer.
mod filter {
    use libc::{BPF_ABS, BPF_JA, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

    /// The native interface of system calls: AUDIT_ARCH_X86_64, and AUDIT_ARCH_AARCH64.
    const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    /// Numbers of fallocate in the native interface and in that of 32-bit programs.
    const FALLOCATE: (u32, u32) = if cfg!(target_arch = "x86_64") { (285, 324) } else { (47, 352) };
    const IO_URING_SETUP: u32 = 425;
    /// The bit of a number in the x32 interface.
    const X32: u32 = 0x4000_0000;

    pub(super) fn install() -> bool {
        let statement = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
        // Skips `over` statements if the loaded value is equal, and `otherwise` statements if it differs.
        let equal =
            |k, over, otherwise| sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: over, jf: otherwise, k };
        let load = |offset| statement(BPF_LD | BPF_W | BPF_ABS, offset);
        let mut program = [
            load(4),
            equal(NATIVE, 0, 4),
            load(0),
            equal(FALLOCATE.0, 6, 0),
            equal(FALLOCATE.0 | X32, 5, 0),
            statement(BPF_JMP | BPF_JA, 2),
            load(0),
            equal(FALLOCATE.1, 2, 0),
            equal(IO_URING_SETUP, 2, 0),
            equal(IO_URING_SETUP | X32, 1, 2),
            statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32),
            statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
            statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW),
        ];
        let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the program outlives the call, which copies it.
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::symlink;

    use super::*;

    /// Confinement is of the calling thread.
    fn confined(folders: &[PathBuf], act: impl FnOnce() + Send) -> bool {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let confined = confine(folders).expect("no error");
                if confined {
                    act();
                } else {
                    println!("skipped: this kernel has no Landlock");
                }
                confined
            });
            run.join().expect("it holds")
        })
    }

    #[test]
    fn confined_process_writes_to_its_folders_only() {
        let (own, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let there = other.path().join("there");
        fs::write(&there, "before").expect("written");
        fs::create_dir(own.path().join("sub")).expect("made");
        symlink(&there, own.path().join("link")).expect("linked");
        let open = File::open(&there).expect("open");
        let folders = [own.path().to_owned()];
        confined(&folders, || {
            let at = |name: &str| own.path().join(name);
            fs::write(at("a"), "text").expect("written");
            fs::rename(at("a"), at("sub/a")).expect("between folders");
            fs::remove_dir_all(at("sub")).expect("removed");
            fs::write("/dev/null", "text").expect("a device");
            let refused = |done: io::Result<()>, what: &str| {
                let error = done.expect_err(what);
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{what}: {error}");
            };
            refused(fs::write(&there, "after"), "an existing file");
            refused(fs::write(at("link"), "after"), "by a link");
            refused(fs::write(other.path().join("new"), ""), "a new file");
            refused(fs::remove_file(&there), "removal");
            refused(fs::create_dir(other.path().join("new")), "a new folder");
            refused(OpenOptions::new().append(true).open(&there).map(drop), "an appended file");
            let again = format!("/proc/self/fd/{}", open.as_raw_fd());
            refused(OpenOptions::new().write(true).open(again).map(drop), "an open descriptor");
            assert_eq!(fs::read_to_string(&there).expect("readable"), "before");
        });
    }

    #[test]
    fn confined_process_cannot_use_descriptors_of_others() {
        let mut command = std::process::Command::new("sleep");
        let mut other = command.arg("60").stdout(std::process::Stdio::piped()).spawn().expect("a process outside");
        let output = format!("/proc/{}/fd/1", other.id());
        OpenOptions::new().write(true).open(&output).expect("possible without confinement");
        confined(&[std::env::temp_dir()], || {
            let error = OpenOptions::new().write(true).open(&output).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        });
        other.kill().expect("it is there");
        other.wait().expect("reaped");
    }

    #[test]
    fn missing_folder_is_an_error() {
        confined(&[], || {
            let error = confine(&["/no/such/folder".into()]).expect_err("refused");
            assert!(format!("{error:#}").contains("/no/such/folder"), "{error:#}");
        });
    }

    #[test]
    fn reservations_are_refused_and_writes_are_not() {
        let file = tempfile::tempfile().expect("a file");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if !forbid_reservations() {
                    return println!("skipped: no filter of system calls");
                }
                // SAFETY: the calls take numbers only.
                unsafe {
                    assert_eq!(libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, 1 << 20), -1);
                    assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EOPNOTSUPP));
                    assert_eq!(libc::syscall(libc::SYS_io_uring_setup, 8, 0), -1);
                    assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
                }
                std::io::Write::write_all(&mut &file, b"text").expect("written");
            });
        });
    }
}
