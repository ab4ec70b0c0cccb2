//! A process that is killed in the middle of an insert leaves an index that opens, is consistent, and goes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const SIZE: u64 = 60;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("insert-diskann-crash-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn index(&self, name: &str) -> String {
        format!("--index={}", self.0.join(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A child process that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_insert-diskann"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // SAFETY: between fork and exec only this one system call is made.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command
}

fn build(index: &str, flags: &[&str], rest: &[&str]) -> Vec<String> {
    let common = ["build", index, "--dims=8", "--block-size=1024", "--fold-every=8"];
    common.iter().chain(flags).chain(rest).map(|&flag| flag.to_owned()).collect()
}

/// The number of vectors in a consistent index.
fn verified(index: &str) -> u64 {
    let output = command(&["verify".to_owned(), index.to_owned()]).output().unwrap();
    assert!(output.status.success(), "the index is not consistent");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["nodes"].as_u64().unwrap()
}

/// Goes on until the index has its size, and verifies it.
fn finish(index: &str, flags: &[&str]) {
    let size = format!("--size={SIZE}");
    let output = command(&build(index, flags, &[&size])).output().unwrap();
    assert!(output.status.success());
    assert_eq!(verified(index), SIZE);
}

const WAYS: [&[&str]; 8] = [
    &["--strategy=baseline"],
    &["--strategy=baseline", "--journal-mode=delete"],
    &["--strategy=seek", "--back-edges=deferred", "--node-cache=per-batch", "--transaction-size=5"],
    &["--strategy=ours"],
    &["--strategy=ours", "--back-edges=eager", "--journal-mode=delete"],
    &["--strategy=ours", "--transaction-size=5"],
    &["--strategy=ours", "--locking-mode=exclusive"],
    &["--strategy=ours", "--cache-kib=64", "--memory-budget-kib=400"],
];

#[test]
fn killed_at_every_moment_of_an_insert() {
    let folder = Folder::new("moment");
    for (way, flags) in WAYS.iter().enumerate() {
        let batched = flags.contains(&"--transaction-size=5");
        for moment in ["search", "shadow-row", "phase1", "phase2", "flush-new", "commit"] {
            // An ordinary insert, one whose commit folds our log, one at which the start is looked for anew, and the end of a transaction.
            for id in [13_u64, 16, 32, 35] {
                let index = folder.index(&format!("{way}-{moment}-{id}.db"));
                let crash = [format!("--size={SIZE}"), format!("--crash={moment}"), format!("--crash-id={id}")];
                let crash: Vec<&str> = crash.iter().map(String::as_str).collect();
                let output = command(&build(&index, flags, &crash)).output().unwrap();
                assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{flags:?} {moment}");
                let acknowledged = String::from_utf8(output.stdout).unwrap().lines().count() as u64;
                let before = if batched { (id - 1) / 5 * 5 } else { id - 1 };
                let committed = match (moment, batched) {
                    ("commit", false) => id,
                    ("commit", true) => id / 5 * 5,
                    _ => before,
                };
                assert_eq!(acknowledged, before, "{flags:?} {moment} {id}");
                assert_eq!(verified(&index), committed, "{flags:?} {moment} {id}");
                if id == 16 {
                    finish(&index, flags);
                }
            }
        }
    }
}

#[test]
fn killed_from_outside_after_any_number_of_inserts() {
    let folder = Folder::new("outside");
    for (way, flags) in WAYS.iter().enumerate() {
        for after in [1_u64, 11, 27] {
            let index = folder.index(&format!("{way}-{after}.db"));
            // Far more than it will get to.
            let mut running = Running(command(&build(&index, flags, &["--size=100000"])).spawn().unwrap());
            let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
            let mut acknowledged: u64 = 0;
            while acknowledged < after {
                acknowledged = lines.next().expect("it is still running").unwrap().parse().unwrap();
            }
            running.0.kill().unwrap();
            assert_eq!(running.0.wait().unwrap().signal(), Some(libc::SIGKILL));
            // Ids printed before the crash count as committed.
            let said = lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).max().unwrap_or(acknowledged);
            let found = verified(&index);
            assert!(found >= said.max(acknowledged), "{flags:?}: {found} after {said}");
            if found < SIZE {
                // With the vectors of the larger index, which begin with those of the smaller.
                finish(&index, flags);
            }
        }
    }
}

/// In the middle of a delete, and of taking the deleted vectors out: the 65th is the one with which there are many.
#[test]
fn killed_at_every_moment_of_a_delete() {
    let folder = Folder::new("delete");
    for (way, flags) in [
        &["--strategy=ours", "--delete-every=2"][..],
        &["--strategy=ours", "--delete-every=2", "--journal-mode=delete"],
        &["--strategy=ours", "--delete-every=2", "--transaction-size=5"],
        &["--strategy=ours", "--delete-every=2", "--cache-kib=64", "--memory-budget-kib=400"],
    ]
    .iter()
    .enumerate()
    {
        for (moment, id) in [("mark", 7_u64), ("mark", 65), ("bypass", 65)] {
            let index = folder.index(&format!("{way}-{moment}-{id}.db"));
            let crash = ["--size=200".to_owned(), format!("--crash={moment}"), format!("--crash-id={id}")];
            let crash: Vec<&str> = crash.iter().map(String::as_str).collect();
            let output = command(&build(&index, flags, &crash)).output().unwrap();
            assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{flags:?} {moment}");
            let acknowledged = String::from_utf8(output.stdout).unwrap().lines().count() as u64;
            // Its insert is committed, or waits in a transaction; its delete is not committed.
            let found = verified(&index);
            if flags.contains(&"--transaction-size=5") {
                assert!(
                    found >= acknowledged - acknowledged / 2 && found <= 2 * id - (id - 1),
                    "{moment} {id}: {found}"
                );
            } else {
                assert_eq!((acknowledged, found), (2 * id - 1, 2 * id - (id - 1)), "{flags:?} {moment}");
            }
            let output = command(&build(&index, flags, &["--size=200"])).output().unwrap();
            assert!(output.status.success());
            assert_eq!(verified(&index), 100, "{flags:?} {moment} {id}");
        }
    }
}

/// Half of the vectors are deleted on the way, and taken out of the graph when there are many of them.
#[test]
fn killed_while_vectors_are_deleted() {
    let folder = Folder::new("deletes");
    for (way, flags) in [
        &["--strategy=ours", "--delete-every=2"][..],
        &["--strategy=ours", "--delete-every=2", "--transaction-size=5"],
        &["--strategy=ours", "--delete-every=2", "--cache-kib=64", "--memory-budget-kib=400"],
    ]
    .iter()
    .enumerate()
    {
        for after in [131_u64, 137, 290] {
            let index = folder.index(&format!("{way}-{after}.db"));
            let mut running = Running(command(&build(&index, flags, &["--size=100000"])).spawn().unwrap());
            let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
            let mut acknowledged: u64 = 0;
            while acknowledged < after {
                acknowledged = lines.next().expect("it is still running").unwrap().parse().unwrap();
            }
            running.0.kill().unwrap();
            assert_eq!(running.0.wait().unwrap().signal(), Some(libc::SIGKILL));
            let said = lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).max().unwrap_or(acknowledged);
            let found = verified(&index);
            assert!(found >= said - said / 2, "{flags:?}: {found} after {said}");
            // With the vectors of the larger index, which begin with those of the smaller.
            let size = 2 * said + 400;
            let output = command(&build(&index, flags, &[&format!("--size={size}")])).output().unwrap();
            assert!(output.status.success());
            assert_eq!(verified(&index), size / 2);
        }
    }
}
