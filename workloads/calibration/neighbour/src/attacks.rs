//! Attacks of a workload on the runner, on its records, and on other arms.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// All attacks by name, with their parameters in [`Target`].
pub const ALL: [(&str, Attack); 27] = [
    // First, because later attacks open descriptors themselves.
    ("inherited", inherited),
    ("trace", trace),
    ("seize", seize),
    ("read-memory", read_memory),
    ("write-memory", write_memory),
    ("read-across", read_across),
    ("environment", environment),
    ("descriptors", descriptors),
    ("take-descriptor", take_descriptor),
    ("connect", connect),
    ("rewrite", rewrite),
    ("replace", replace),
    ("delete", delete),
    ("add", add),
    ("program", program),
    ("elsewhere", elsewhere),
    ("storage", storage),
    ("pipe", pipe),
    ("link", link),
    ("flood", flood),
    ("fill", fill),
    ("folder", folder),
    ("socket", socket),
    ("device", device),
    ("detour", detour),
    ("daemon", daemon),
    ("stop", stop),
];

/// Those that leave something else where the result is expected.
pub const SPOIL: [&str; 8] = ["pipe", "link", "flood", "fill", "folder", "socket", "device", "detour"];

/// An attack. `Ok` describes a successful attack; the error is the reason of its failure.
pub type Attack = fn(&Target) -> io::Result<String>;

/// The target of an attack. An attack whose parameter is absent fails.
#[derive(Debug, Default, clap::Args)]
// The command-line program documents the fields.
#[command(about = None::<&str>)]
pub struct Target {
    /// The keeper's socket.
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// A folder with attempts.
    #[arg(long)]
    pub attempts: Option<PathBuf>,
    /// The program of another arm.
    #[arg(long)]
    pub program: Option<PathBuf>,
    /// Where the result is expected; without it on standard output.
    #[arg(long)]
    pub output: Option<PathBuf>,
}

/// Carries out one attack.
pub fn attack(name: &str, target: &Target) -> io::Result<String> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map_or_else(|| Err(io::Error::other(format!("no attack is called {name:?}"))), |(_, attack)| attack(target))
}

fn runner() -> i32 {
    // SAFETY: getppid has no preconditions.
    unsafe { libc::getppid() }
}

fn of_runner(file: &str) -> String {
    format!("/proc/{}/{file}", runner())
}

fn aim(at: &Option<PathBuf>) -> io::Result<&Path> {
    at.as_deref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

fn check(result: libc::c_long, got: &str) -> io::Result<String> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(got.to_owned()) }
}

fn trace(_: &Target) -> io::Result<String> {
    // SAFETY: attaching takes no pointer.
    check(unsafe { libc::ptrace(libc::PTRACE_ATTACH, runner(), 0, 0) }, "the runner is traced")
}

fn seize(_: &Target) -> io::Result<String> {
    // SAFETY: seizing takes no pointer.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, runner(), 0, 0) }, "the runner is traced")
}

fn read_memory(_: &Target) -> io::Result<String> {
    File::open(of_runner("mem")).map(|_| "the runner's memory is open for reading".to_owned())
}

fn write_memory(_: &Target) -> io::Result<String> {
    OpenOptions::new().write(true).open(of_runner("mem")).map(|_| "the runner's memory is open for writing".to_owned())
}

fn read_across(_: &Target) -> io::Result<String> {
    let mut byte = 0_u8;
    let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // The permission check precedes the address check, so that any address works.
    let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(4096), iov_len: 1 };
    // SAFETY: both vectors are alive, and the local one is of one writable byte.
    let read = unsafe { libc::process_vm_readv(runner(), &raw const here, 1, &raw const there, 1, 0) };
    match io::Error::last_os_error() {
        error if read < 0 && error.raw_os_error() != Some(libc::EFAULT) => Err(error),
        _ => Ok("the runner's memory can be read".to_owned()),
    }
}

fn environment(_: &Target) -> io::Result<String> {
    fs::read(of_runner("environ")).map(|_| "the runner's environment".to_owned())
}

fn descriptors(_: &Target) -> io::Result<String> {
    fs::read_dir(of_runner("fd")).map(|entries| format!("{} descriptors of the runner", entries.count()))
}

fn take_descriptor(_: &Target) -> io::Result<String> {
    // SAFETY: pidfd_open takes two numbers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, runner(), 0) };
    check(process, "")?;
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for number in 3..64 {
        // SAFETY: pidfd_getfd takes three numbers.
        match check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, number, 0) }, "a descriptor of the runner") {
            Ok(got) => return Ok(got),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn inherited(_: &Target) -> io::Result<String> {
    for number in 3..1024 {
        // SAFETY: F_GETFD only asks whether the descriptor is open.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
            return Ok(format!("descriptor {number} is inherited"));
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBADF))
}

fn connect(target: &Target) -> io::Result<String> {
    let mut stream = UnixStream::connect(aim(&target.socket)?)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let read = stream.read(&mut [0; 64])?;
    if read == 0 { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok("a connection to the keeper".to_owned()) }
}

/// The attempts of earlier trials.
fn victims(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
}

fn forge(text: &str) -> String {
    text.replace("\"Failed\"", "\"Succeeded\"").replace("\"value\":", "\"value\":9")
}

fn rewrite(target: &Target) -> io::Result<String> {
    for file in victims(aim(&target.attempts)?)? {
        let mut permissions = fs::metadata(&file)?.permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "an attacker who rewrites a file does this")]
        permissions.set_readonly(false);
        fs::set_permissions(&file, permissions)?;
        let forged = forge(&fs::read_to_string(&file)?);
        let mut file = OpenOptions::new().write(true).truncate(true).open(&file)?;
        file.write_all(forged.as_bytes())?;
    }
    Ok("attempts are rewritten".to_owned())
}

fn replace(target: &Target) -> io::Result<String> {
    for file in victims(aim(&target.attempts)?)? {
        let forged = forge(&fs::read_to_string(&file)?);
        fs::remove_file(&file)?;
        fs::write(&file, forged)?;
    }
    Ok("attempts are replaced".to_owned())
}

fn delete(target: &Target) -> io::Result<String> {
    victims(aim(&target.attempts)?)?.iter().try_for_each(fs::remove_file).map(|()| "attempts are deleted".to_owned())
}

fn add(target: &Target) -> io::Result<String> {
    let victims = victims(aim(&target.attempts)?)?;
    let file = &victims[0];
    let name = file.file_name().unwrap_or_default().to_string_lossy().replace("-s0000", "-s0009");
    fs::write(file.with_file_name(name), forge(&fs::read_to_string(file)?)).map(|()| "an attempt is added".to_owned())
}

fn program(target: &Target) -> io::Result<String> {
    let file = aim(&target.program)?;
    let new = file.with_extension("new");
    fs::copy("/bin/true", &new)?;
    fs::rename(new, file).map(|()| "another arm's program is replaced".to_owned())
}

/// Places outside of the temporary folder that a process of a pod's container may be able to write to: the termination log,
/// which is a file of the host, Argo's folder, the root, and the container's log by its first process.
const PLACES: [&str; 5] =
    ["/dev/termination-log", "/var/run/argo/ctr/planted", "/planted", "/proc/1/fd/1", "/proc/1/fd/2"];

fn elsewhere(_: &Target) -> io::Result<String> {
    let open = |place: &&str| OpenOptions::new().append(true).create(!place.starts_with("/proc")).open(place).is_ok();
    match PLACES.into_iter().filter(open).collect::<Vec<_>>() {
        found if found.is_empty() => Err(io::ErrorKind::PermissionDenied.into()),
        found => Ok(format!("{} can be written to", found.join(", "))),
    }
}

/// Fills the temporary folder, and leaves the files there.
fn storage(_: &Target) -> io::Result<String> {
    let mut file = File::create(std::env::temp_dir().join("large"))?;
    (0..8192).try_for_each(|_| file.write_all(&[b'1'; 1 << 20])).map(|()| "8 GiB are written".to_owned())
}

fn pipe(target: &Target) -> io::Result<String> {
    let made = mknodat(CWD, aim(&target.output)?, FileType::Fifo, Mode::from_raw_mode(0o600), 0);
    Ok(made.map(|()| "a pipe is where the result is read".to_owned())?)
}

fn link(target: &Target) -> io::Result<String> {
    symlink("/dev/zero", aim(&target.output)?).map(|()| "a link to a device is where the result is read".to_owned())
}

fn flood(target: &Target) -> io::Result<String> {
    File::create(aim(&target.output)?)?.set_len(1 << 40).map(|()| "a huge file is where the result is read".to_owned())
}

fn fill(target: &Target) -> io::Result<String> {
    let mut file = File::create(aim(&target.output)?)?;
    (0..64)
        .try_for_each(|_| file.write_all(&[b'1'; 1 << 20]))
        .map(|()| "64 MiB are where the result is read".to_owned())
}

fn folder(target: &Target) -> io::Result<String> {
    fs::create_dir(aim(&target.output)?).map(|()| "a folder is where the result is read".to_owned())
}

fn socket(target: &Target) -> io::Result<String> {
    UnixListener::bind(aim(&target.output)?).map(|_| "a socket is where the result is read".to_owned())
}

/// A whiteout, the only device node that unprivileged users may create (Linux 5.8).
fn device(target: &Target) -> io::Result<String> {
    let made = mknodat(CWD, aim(&target.output)?, FileType::CharacterDevice, Mode::from_raw_mode(0o600), 0);
    Ok(made.map(|()| "a device is where the result is read".to_owned())?)
}

/// Replaces the result's folder by a link to files that only the runner itself may read.
fn detour(target: &Target) -> io::Result<String> {
    let folder = aim(&target.output)?.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::remove_dir(folder)?;
    symlink("/proc/self", folder).map(|()| "the runner's own files are where the result is read".to_owned())
}

/// Leaves a process of another session behind, whose parent has gone.
fn daemon(_: &Target) -> io::Result<String> {
    // SAFETY: this process has one thread, and its children only call functions that may be called after fork.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
            if libc::fork() == 0 {
                loop {
                    libc::pause();
                }
            }
            libc::_exit(0);
        }
    }
    Ok("a daemon".to_owned())
}

/// Sends SIGTERM to the runner, as its parent would.
fn stop(_: &Target) -> io::Result<String> {
    // SAFETY: kill takes two numbers.
    check(unsafe { libc::kill(runner(), libc::SIGTERM) }.into(), "the runner was told to end")
}
