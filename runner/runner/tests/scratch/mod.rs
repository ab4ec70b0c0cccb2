//! Trials that write as much as they can, to every place that they find.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const MIB: u64 = 1 << 20;
/// Enough to exceed every limit of these tests, and not this machine.
const MUCH: &str = "3072";
/// The bound on the bytes beyond a limit.
const OVERSHOOT: u64 = 512 * MIB;

impl Bench {
    /// Runs the block confined to a folder, and returns its attempts and the growth of the folder's file system.
    fn run_in(&self, folder: &Path, medium: &str, mebibytes: u64) -> (Vec<Attempt>, u64) {
        let (own, bytes) = (folder.display().to_string(), (mebibytes * MIB).to_string());
        let records = self.text("");
        let mut command = self.command(&[
            "--scratch",
            &own,
            "--scratch",
            &records,
            "--scratch-bytes",
            &bytes,
            "--scratch-medium",
            medium,
        ]);
        command.env("TMPDIR", folder);
        let (before, ended) = (used(folder), AtomicBool::new(false));
        let (output, most) = std::thread::scope(|scope| {
            let measure = scope.spawn(|| {
                let mut most = 0;
                while !ended.load(Ordering::SeqCst) {
                    most = most.max(used(folder).saturating_sub(before));
                    std::thread::sleep(Duration::from_millis(2));
                }
                most
            });
            let output = command.output().expect("the runner starts");
            ended.store(true, Ordering::SeqCst);
            (output, measure.join().expect("measured"))
        });
        assert!(output.status.success(), "{}", stderr(&output));
        (self.attempts(), most)
    }
}

fn used(folder: &Path) -> u64 {
    let facts = rustix::fs::statvfs(folder).expect("a file system");
    (facts.f_blocks - facts.f_bfree) * facts.f_frsize
}

fn is_confined(attempt: &Attempt) -> bool {
    attempt.environment.soft["writesConfined"] == true.into()
}

pub(crate) fn disk_is_bounded_in_every_way_of_writing() {
    const LIMIT: u64 = 128;
    for way in ["one file", "many files", "deleted", "mapped"] {
        let bench = Bench::new(&[&["write", "TMPDIR/large", MUCH, way]]);
        let (attempts, most) = bench.run_in(bench.folder.path(), "disk", LIMIT);
        assert_message(&attempts[0], Outcome::Failed, &["reached its limit of 128 MiB", "(disk)", "scratch.size"]);
        println!("{way}: {} MiB beyond the limit", (most / MIB).saturating_sub(LIMIT));
        assert!(most < LIMIT * MIB + OVERSHOOT, "{way}: {} MiB", most / MIB);
    }
    let bench = Bench::new(&[&["write", "TMPDIR/large", MUCH, "reserved"]]);
    let (attempts, most) = bench.run_in(bench.folder.path(), "disk", LIMIT);
    assert!(attempts[0].stderr_tail.as_deref().is_some_and(|tail| tail.contains("not supported")), "{:?}", attempts[0]);
    assert!(most < LIMIT * MIB + OVERSHOOT, "reserved: {} MiB", most / MIB);
}

/// A file system in memory that is unmounted on drop.
struct Memory(PathBuf);

impl Memory {
    fn mount(at: PathBuf, mebibytes: u64) -> Option<Self> {
        fs::create_dir(&at).expect("made");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]).arg(&at);
        let mounted = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !mounted {
            println!("skipped: this user may not mount a file system");
        }
        mounted.then(|| Self(at))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

pub(crate) fn memory_is_bounded_and_a_full_one_fails_the_trial() {
    const LIMIT: u64 = 32;
    for way in ["one file", "many files"] {
        let bench = Bench::new(&[&["write", "TMPDIR/large", MUCH, way], &["ok"]]);
        let Some(memory) = Memory::mount(bench.path("memory"), LIMIT) else { return };
        let (attempts, most) = bench.run_in(&memory.0, "memory", LIMIT);
        // The program handles the refusal, prints a result and exits with code 0.
        assert_message(&attempts[0], Outcome::Failed, &["reached its limit of 32 MiB", "(memory)"]);
        assert_message(&attempts[1], Outcome::Succeeded, &[]);
        assert!(most <= LIMIT * MIB, "{way}: {} MiB", most / MIB);
    }
}

pub(crate) fn other_places_refuse_writes() {
    let other = tempfile::tempdir().expect("a folder");
    let file = other.path().join("termination-log");
    fs::write(&file, "").expect("made");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("set");
    // A process of the container that is no trial, such as the one that Argo starts the runner with.
    let mut beside = Command::new("sleep").arg("60").stdout(Stdio::piped()).spawn().expect("a process");
    let output = format!("/proc/{}/fd/1", beside.id());
    for place in [file.display().to_string(), other.path().join("new").display().to_string(), output] {
        let bench = Bench::new(&[&["write", &place, "64", "one file"]]);
        let (attempts, _) = bench.run_in(bench.folder.path(), "memory", 64);
        // SAFETY: with the last argument the call only returns the version of Landlock.
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) };
        assert_eq!(is_confined(&attempts[0]), version >= 2, "Landlock of version {version}");
        if version < 2 {
            println!("skipped: this kernel has no Landlock");
            break;
        }
        let tail = attempts[0].stderr_tail.clone().unwrap_or_default();
        assert!(tail.contains("refused: Permission denied"), "{place}: {tail}");
    }
    assert_eq!(fs::metadata(&file).expect("there").len(), 0);
    assert_eq!(fs::read_dir(other.path()).expect("listed").count(), 1);
    beside.kill().expect("it is there");
    beside.wait().expect("reaped");
}

pub(crate) fn service_that_fills_the_disk_fails_its_trial() {
    let ready = json!({"on": "Line", "text": "never printed", "timeoutSeconds": 20});
    let bench = roles::with_roles(Bench::new(&[&["ok"]]), &["write", "TMPDIR/large", MUCH, "one file"], ready);
    let (attempts, most) = bench.run_in(bench.folder.path(), "disk", 128);
    assert_message(&attempts[0], Outcome::Failed, &["reached its limit of 128 MiB"]);
    assert!(most < 128 * MIB + OVERSHOOT, "{} MiB", most / MIB);
}

pub(crate) fn trial_below_the_limit_succeeds_and_the_fingerprint_has_the_medium() {
    for (medium, name) in [("disk", "Disk"), ("memory", "Memory")] {
        let bench = Bench::new(&[&["write", "TMPDIR/small", "8", "one file"]]);
        let (attempts, _) = bench.run_in(bench.folder.path(), medium, 8192);
        assert_message(&attempts[0], Outcome::Succeeded, &[]);
        let soft = &attempts[0].environment.soft;
        assert_eq!((&soft["scratchMedium"], &soft["scratchBytes"]), (&name.into(), &(8192 * MIB).into()));
    }
}
