//! Trials of which the kernel, or a signal, kills a process.

use assay_neighbour::killed::{self, Needs};
use assay_schema::kernel::Kernel;

use super::*;

const KILLED: &str = "the kernel killed a process of this trial (out of memory)";
const NO_PROCESS: &str = "could not start another process or thread";

/// Mount points of the cgroup controllers, with whether they are of version 2.
fn hierarchies() -> BTreeMap<&'static str, (PathBuf, bool)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut found = BTreeMap::new();
    for line in mounts.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, point, kind, options, ..] = words[..] else { continue };
        for controller in ["memory", "pids"] {
            let controllers = Path::new(point).join("cgroup.subtree_control");
            let is_v2 = || {
                fs::read_to_string(&controllers)
                    .is_ok_and(|text| text.split_whitespace().any(|word| word == controller))
            };
            match kind {
                "cgroup" if options.split(',').any(|option| option == controller) => {
                    found.insert(controller, (PathBuf::from(point), false));
                }
                "cgroup2" if is_v2() => {
                    found.entry(controller).or_insert((PathBuf::from(point), true));
                }
                _ => {}
            }
        }
    }
    found
}

/// A cgroup that this test made, removed on drop.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes a cgroup with a limit, or prints why this machine does not permit it.
    fn make(controller: &'static str, name: &str, limit: &str) -> Option<Self> {
        let skip = |why: String| println!("skipped: no separate {controller} cgroup: {why}");
        let Some((point, v2)) = hierarchies().remove(controller) else {
            skip("the controller is not mounted".to_owned());
            return None;
        };
        let folder = point.join(format!("assay-test-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&folder) {
            skip(format!("{}: {error}", folder.display()));
            return None;
        }
        let cgroup = Self(folder);
        let file = match (controller, v2) {
            ("memory", false) => "memory.limit_in_bytes",
            ("memory", true) => "memory.max",
            _ => "pids.max",
        };
        if let Err(error) = fs::write(cgroup.0.join(file), limit) {
            skip(format!("{file}: {error}"));
            return None;
        }
        // Without a limit, swap would hold the pages beyond the memory limit.
        let _ = fs::write(
            cgroup.0.join(if v2 { "memory.swap.max" } else { "memory.memsw.limit_in_bytes" }),
            if v2 { "0" } else { limit },
        );
        Some(cgroup)
    }

    /// Runs a block whose runner is in the cgroup.
    fn run(&self, bench: &Bench) -> Vec<Attempt> {
        let runner = bench.command(&[]);
        let mut command = Command::new("/bin/sh");
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        command.args(["-c", &enter, "sh"]).arg(runner.get_program()).args(runner.get_args());
        command.envs(runner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.stdin(Stdio::null()).output().expect("the runner starts");
        assert!(output.status.success(), "{}", stderr(&output));
        bench.attempts()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that has just ended may still be in it.
        let give_up = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn kernel(attempt: &Attempt) -> &Kernel {
    attempt.kernel.as_ref().expect("the events are recorded")
}

/// The cells that each run one way to be killed, then a cell of which no process is killed.
fn killed_and_ok(ways: &[&str]) -> Bench {
    let cells: Vec<[&str; 2]> = ways.iter().map(|way| ["killed", way]).collect();
    let cells: Vec<&[&str]> = cells.iter().map(|cell| &cell[..]).chain([&["ok"][..]]).collect();
    Bench::new(&cells)
}

pub(crate) fn every_way_to_be_killed_fails_the_trial() {
    let ways: Vec<&str> = killed::ALL.iter().filter(|way| way.needs == Needs::Nothing).map(|way| way.name).collect();
    let (attempts, said) = killed_and_ok(&ways).with("/workload/timeoutSeconds", json!(10)).run();
    for (way, attempt) in ways.iter().zip(&attempts) {
        let words: &[&str] = match *way {
            "kill" => &["signal 9 (SIGKILL)"],
            "segv" => &["signal 11 (SIGSEGV)"],
            "abort" | "address-limit" => &["signal 6 (SIGABRT)"],
            "seccomp" => &["signal 31 (SIGSYS)"],
            "cpu-limit" => &["signal 24 (SIGXCPU)"],
            "timeout" => &["timeout of 10 s"],
            "orphan-kill" | "orphan-kill-late" => {
                &["a process of this trial (\"", "signal 9 (SIGKILL)", "must wait for them"]
            }
            "orphan-segv" => &["a process of this trial (\"", "signal 11 (SIGSEGV)", "which does not count"],
            "orphan-abort" => &["a process of this trial (\"", "signal 6 (SIGABRT)"],
            "orphan-seccomp" => &["a process of this trial (\"", "signal 31 (SIGSYS)"],
            "orphan-cpu-limit" => &["a process of this trial (\"", "signal 24 (SIGXCPU)"],
            "orphan-file-limit" => &["a process of this trial (\"", "signal 25 (SIGXFSZ)"],
            other => panic!("{other}: what does its message say?"),
        };
        let outcome = if *way == "timeout" { Outcome::TimedOut } else { Outcome::Failed };
        assert_message(attempt, outcome, words);
        assert_eq!(kernel(attempt).deaths.is_some(), way.starts_with("orphan"), "{way}: {:?}", attempt.kernel);
    }
    let ok = attempts.last().expect("the last trial");
    assert_message(ok, Outcome::Succeeded, &[]);
    assert_eq!(kernel(ok).deaths, None, "the deaths of earlier trials are not its own: {said}");
}

/// Whether an orphan counts as killed must not depend on how quickly it dies.
pub(crate) fn an_orphan_killed_late_is_never_taken_for_one_that_the_runner_killed() {
    let mut bench = killed_and_ok(&["orphan-kill-late"]);
    bench.wave["blocks"][0]["order"] = json!([0].repeat(30));
    let (attempts, _) = bench.run();
    assert_eq!(attempts.len(), 30);
    for attempt in &attempts {
        assert_message(attempt, Outcome::Failed, &["signal 9 (SIGKILL)"]);
        assert_eq!(attempt.left_behind, None, "the trial killed it, not the runner");
    }
}

pub(crate) fn helpers_stopped_by_the_program_or_the_runner_are_no_deaths() {
    let (attempts, _) =
        Bench::new(&[&["orphan-by", "15"], &["orphan-by", "13"], &["orphan-by", "none"], &["ok"]]).run();
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
        assert_eq!(kernel(attempt).deaths, None);
    }
    assert_eq!(attempts[2].left_behind, Some(1), "the runner killed it");
}

pub(crate) fn oom_kill_in_its_own_cgroup_fails_the_trial() {
    let Some(cgroup) = Cgroup::make("memory", "oom", "268435456") else { return };
    let attempts = cgroup.run(&killed_and_ok(&["child-oom", "orphan-oom", "oom"]));
    for attempt in &attempts[..3] {
        assert_message(attempt, Outcome::Failed, &[KILLED, "the memory limit is 268435456 bytes"]);
        assert_eq!(kernel(attempt).oom_kills, Some(1), "{:?}", attempt.kernel);
        assert!(kernel(attempt).machine_oom_kills >= Some(1), "{:?}", attempt.kernel);
    }
    assert_eq!(attempts[0].exit_code, Some(0), "the harness overlooked it");
    assert_message(&attempts[3], Outcome::Succeeded, &[]);
    assert_eq!(kernel(&attempts[3]).oom_kills, Some(0), "kills of earlier trials are not its own");
}

pub(crate) fn pid_limit_of_its_own_cgroup_fails_the_trial() {
    let Some(cgroup) = Cgroup::make("pids", "pids", "40") else { return };
    let attempts = cgroup.run(&killed_and_ok(&["pid-limit"]));
    assert_message(&attempts[0], Outcome::Failed, &[NO_PROCESS, "which does not count"]);
    assert!(kernel(&attempts[0]).pid_limit_hits >= Some(1), "{:?}", attempts[0].kernel);
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
    assert_eq!(kernel(&attempts[1]).pid_limit_hits, Some(0));
}

/// In a cgroup with other processes, such as that of a login session, their kills are not those of a trial.
pub(crate) fn oom_kill_in_a_shared_cgroup_is_unknown() {
    let Some(cgroup) = Cgroup::make("memory", "shared", "268435456") else { return };
    let mut other = Command::new("sleep").arg("600").spawn().expect("another process");
    fs::write(cgroup.0.join("cgroup.procs"), other.id().to_string()).expect("moved");
    let attempts = cgroup.run(&killed_and_ok(&["child-oom"]));
    other.kill().expect("killed");
    other.wait().expect("reaped");
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_eq!(kernel(&attempts[0]).oom_kills, None, "it is unknown, and not zero");
    let why = kernel(&attempts[0]).unknown.as_ref().and_then(|unknown| unknown.get("oomKills")).expect("the reason");
    assert!(why.contains(&format!("also has process {} (sleep)", other.id())), "{why}");
    assert!(kernel(&attempts[0]).machine_oom_kills >= Some(1), "{:?}", attempts[0].kernel);
}
