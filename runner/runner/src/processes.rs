//! The visible processes and their relations, as read from /proc.

use std::fs;

use rustix::process::Pid;

/// Bit of SIGKILL in a set of signals.
const KILL_BIT: u64 = 1 << (libc::SIGKILL - 1);
/// The kernel's `PF_SIGNALED`, set for a task that a signal ends.
const SIGNALED: u64 = 0x400;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) name: String,
    pub(crate) state: State,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// SIGKILL was sent to it, or another signal is ending it.
    Dying,
    /// Its parent has not reaped it.
    Dead,
}

/// Returns all visible processes.
pub(crate) fn all() -> Vec<Process> {
    let read = |name: &str| -> Option<Process> {
        let pid = name.parse().ok()?;
        // The process name is set by the process and may not be UTF-8.
        parse(pid, &String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?)).collect()
}

/// Parses a process's `stat`. A process whose main thread has exited before others is shown as a zombie but still runs.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    // The command name in brackets may contain any character.
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    let state = match (*words.first()?, number(17)?) {
        ("Z" | "X", 0 | 1) => State::Dead,
        // Bits of a thread that has exited before others say nothing about the process.
        ("Z" | "X", _) => State::Running,
        _ if number(6)? & SIGNALED != 0 || number(28)? & KILL_BIT != 0 => State::Dying,
        _ => State::Running,
    };
    Some(Process { pid, parent: words.get(1)?.parse().ok()?, group: words.get(2)?.parse().ok()?, name, state })
}

/// Returns the descendants of this process, including those that have exited and were not reaped.
pub(crate) fn descendants() -> Vec<Process> {
    let (mut family, mut others) = (Vec::<Process>::new(), all());
    let mut parents = vec![own_pid()];
    while let Some(parent) = parents.pop() {
        let (children, rest) = others.into_iter().partition(|process| process.parent == parent);
        others = rest;
        let children: Vec<Process> = children;
        parents.extend(children.iter().map(|child| child.pid));
        family.extend(children);
    }
    family
}

/// Returns this process and its ancestors.
pub(crate) fn line() -> Vec<i32> {
    let mut line = vec![own_pid()];
    let parent_of = |pid: i32| parse(pid, &String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?));
    while let Some(process) = line.last().and_then(|&last| parent_of(last)).filter(|process| process.parent > 0) {
        line.push(process.parent);
    }
    line
}

/// Returns all running processes except this one and its ancestors.
pub(crate) fn strays() -> Vec<Pid> {
    let line = line();
    let stray = |process: &Process| process.state != State::Dead && !line.contains(&process.pid);
    all().iter().filter(|process| stray(process)).filter_map(|process| Pid::from_raw(process.pid)).collect()
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn descendants_finds_arbitrary_process_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [&b"plain"[..], b"\xff\xfe", b"a) Z 1 (b", b"two\nlines", "\u{e9}".repeat(9).as_bytes()] {
            let program = folder.path().join(OsStr::from_bytes(name));
            std::os::unix::fs::symlink("/bin/sleep", &program).expect("linked");
            let mut child = Command::new(&program).arg("60").spawn().expect("started");
            let seen = descendants().iter().any(|process| process.pid == child.id().cast_signed());
            child.kill().expect("killed");
            child.wait().expect("reaped");
            assert!(seen, "{:?} would survive its trial", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn states_of_a_process() {
        let stat = |state: &str, threads: u32, flags: u32, pending: u32| {
            format!(
                "7 (a) Z 1 (b) {state} 42 41 7 0 -1 {flags} 1 0 0 0 1 2 0 0 20 0 {threads} 0 4711 1 2 3 4 5 6 7 8 {pending} 0"
            )
        };
        for (what, stat, state) in [
            ("it runs", stat("S", 9, 4, 0), Some(State::Running)),
            ("a zombie", stat("Z", 1, 0, 0), Some(State::Dead)),
            ("one that is being collected", stat("X", 0, 0, 0), Some(State::Dead)),
            ("its first thread has ended and another works on", stat("Z", 2, 4, 0), Some(State::Running)),
            ("SIGKILL is pending", stat("R", 1, 0, 0x100), Some(State::Dying)),
            ("SIGTERM is pending", stat("R", 1, 0, 0x4000), Some(State::Running)),
            ("a signal ends it", stat("R", 1, 0x404, 0), Some(State::Dying)),
            ("a line that is cut off", "7 (a) S 42".to_owned(), None),
        ] {
            let found = parse(7, &stat);
            assert_eq!(found.as_ref().map(|process| process.state), state, "{what}");
            if let Some(process) = found {
                assert_eq!((process.parent, process.group, process.name.as_str()), (42, 41, "a) Z 1 (b"), "{what}");
            }
        }
    }

    #[test]
    fn line_has_this_process_and_its_parent() {
        let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
        assert_eq!(line()[..2], [own_pid(), parent]);
    }
}
