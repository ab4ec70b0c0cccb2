//! A hostile workload against the runner, with a keeper.
//!
//! Root has unlimited access. If the tests run as root, the runner and its trials run as an unprivileged user.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::thread::JoinHandle;

use super::*;

const NOBODY: u32 = 65532;

/// A keeper that records all messages.
struct Kept {
    lines: Vec<Value>,
}

impl Kept {
    fn of(&self, action: &str) -> Vec<&Value> {
        self.lines.iter().filter_map(|line| line.get(action)).collect()
    }

    fn attempts(&self) -> Vec<Attempt> {
        let validator = attempt_validator();
        let read = |value: &Value| {
            let errors: Vec<_> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path)).collect();
            assert!(errors.is_empty(), "{errors:?}");
            assay_schema::read(value.to_string().as_bytes()).expect("the types agree")
        };
        self.of("attempt").into_iter().map(read).collect()
    }
}

/// Accepts one connection and answers until it closes.
fn keep(socket: &Path, hello: Value) -> JoinHandle<Kept> {
    let listener = UnixListener::bind(socket).expect("a socket");
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).expect("set");
    let socket = socket.to_owned();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the runner");
        drop(listener);
        fs::remove_file(socket).expect("removed");
        writeln!(stream, "{hello}").expect("told");
        let mut kept = Kept { lines: Vec::new() };
        for line in BufReader::new(stream.try_clone().expect("a stream")).lines() {
            let Ok(line) = line else { break };
            let line: Value = serde_json::from_str(&line).expect("JSON");
            let said = line.get("started").or(line.get("attempt"));
            if let Some(trial) = said.and_then(|attempt| attempt["trial"].as_str()) {
                let _ = writeln!(stream, "{}", json!({"kept": trial}));
            }
            kept.lines.push(line);
        }
        kept
    })
}

fn hello() -> Value {
    json!({"keeper": "assay.dev/keeper/v1alpha1", "executor": "pod_1", "ended": {}})
}

/// Copies a program and waits until it can be executed. A concurrent fork in another test holds the copy open for
/// writing until its child calls exec.
fn place(program: &Path, to: &Path, arguments: &[&str]) {
    fs::copy(program, to).expect("copied");
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).expect("set");
    wait_for("the copy to be closed", || {
        let mut command = Command::new(to);
        let output = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        (!output.is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)).then_some(())
    });
}

impl Bench {
    /// Runs the block with a keeper, as an unprivileged user who owns the folder.
    fn besieged(&self, hello: Value) -> (Kept, Output) {
        fs::write(self.path("wave.json"), self.wave.to_string()).expect("the wave is written");
        let socket = self.path("socket");
        let keeper = keep(&socket, hello);
        // A copy that this user can read.
        let runner = self.path("assay-runner");
        place(Path::new(env!("CARGO_BIN_EXE_assay-runner")), &runner, &["--version"]);
        let mut command = Command::new(&runner);
        command.args(["block", "--block", "w000-b0003", "--wave"]).arg(self.path("wave.json"));
        command.arg("--keeper").arg(format!("unix:{}", socket.display())).env("TMPDIR", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if rustix::process::getuid().is_root() {
            for entry in fs::read_dir(self.folder.path()).expect("the folder").flatten() {
                chown(entry.path(), Some(NOBODY), Some(NOBODY)).expect("given away");
            }
            chown(self.folder.path(), Some(NOBODY), Some(NOBODY)).expect("given away");
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().expect("the runner starts");
        (keeper.join().expect("the keeper"), output)
    }

    /// A trial of the baseline, one of a hostile candidate and a second one of the baseline, each with a separate
    /// program.
    fn hostile(arguments: &[&str]) -> Self {
        let bench = Self::new(&[&[], &[]]);
        let own = std::env::current_exe().expect("own path");
        for name in ["victim", "hostile"] {
            place(&own, &bench.path(name), &["testee", "ok"]);
        }
        let hostile: Vec<String> =
            arguments.iter().map(|argument| argument.replace("FOLDER", &bench.text(""))).collect();
        let argv = [vec![bench.text("hostile"), "testee".into()], hostile].concat();
        bench
            .with("/arms", json!([{"name": "loop", "baseline": true}, {"name": "new", "baseline": false}]))
            .with("/cells/1/arm", json!(1))
            .with("/blocks/0/order", json!([0, 1, 0]))
            .with_argv(argv)
    }

    fn with_argv(mut self, hostile: Vec<String>) -> Self {
        self.wave["cells"][0]["argv"] = json!([self.text("victim"), "testee", "ok"]);
        self.wave["cells"][1]["argv"] = json!(hostile);
        self
    }
}

pub(super) fn attacks_on_the_runner_and_its_keeper_fail() {
    for name in [
        "trace",
        "seize",
        "read-memory",
        "write-memory",
        "read-across",
        "environment",
        "descriptors",
        "take-descriptor",
        "inherited",
        "connect",
    ] {
        let (kept, output) = Bench::hostile(&["attack", name, "FOLDER/socket"]).besieged(hello());
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let attempts = kept.attempts();
        assert_eq!(attempts.len(), 3, "{name}");
        assert_message(&attempts[0], Outcome::Succeeded, &[]);
        assert_message(&attempts[2], Outcome::Succeeded, &[]);
        let said = attempts[1].stderr_tail.clone().unwrap_or_default();
        assert!(said.contains("refused"), "{name}: {said}");
        assert_eq!(attempts[1].outcome, Outcome::Succeeded, "{name}: an attack that got nowhere is no failure");
    }
}

pub(super) fn trials_are_announced_before_and_stored_after_execution() {
    let (kept, output) = Bench::hostile(&["ok"]).besieged(hello());
    assert!(output.status.success(), "{}", stderr(&output));
    let order: Vec<&str> = kept
        .lines
        .iter()
        .map(|line| line.as_object().expect("an object").keys().next().expect("one").as_str())
        .collect();
    assert_eq!(order, ["started", "attempt", "started", "attempt", "started", "attempt", "done"]);
    for (started, attempt) in kept.of("started").into_iter().zip(kept.attempts()) {
        let started: Attempt = assay_schema::read(started.to_string().as_bytes()).expect("an attempt as it stands");
        assert_eq!((&started.id, started.outcome), (&attempt.id, Outcome::Failed));
        assert_eq!(started.environment, attempt.environment, "if it is all there will be, it can be compared");
        assert_eq!(attempt.id, format!("pod_1/{}", attempt.trial), "the keeper says who runs it");
    }
}

pub(super) fn a_changed_program_of_another_arm_is_a_named_failure() {
    let (kept, output) = Bench::hostile(&["attack", "program", "FOLDER/victim"]).besieged(hello());
    assert!(output.status.success(), "{}", stderr(&output));
    let attempts = kept.attempts();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert!(attempts[1].stderr_tail.as_deref().is_some_and(|said| said.contains("got")), "{:?}", attempts[1]);
    assert_message(&attempts[2], Outcome::NotStarted, &["victim", "changed after the block began", "read-only"]);
}

pub(super) fn a_daemon_does_not_outlive_its_trial() {
    let (kept, output) = Bench::hostile(&["attack", "daemon", "-"]).besieged(hello());
    assert!(output.status.success(), "{}", stderr(&output));
    let attempts = kept.attempts();
    assert_eq!(attempts.iter().map(|attempt| attempt.left_behind).collect::<Vec<_>>(), [None, Some(1), None]);
}

pub(super) fn write_protected_files_are_removed() {
    let (kept, output) = Bench::hostile(&["close"]).besieged(hello());
    assert!(output.status.success(), "{}", stderr(&output));
    let attempts = kept.attempts();
    let closed = attempts[1].stderr_tail.clone().expect("where it is");
    let folder = Path::new(closed.trim()).ancestors().nth(2).expect("the trial's folder");
    assert!(folder.display().to_string().contains(".assay-trial-") && !folder.exists(), "{closed}");
    assert_message(&attempts[2], Outcome::Succeeded, &[]);
}

pub(super) fn special_files_are_not_results() {
    for (name, path, words) in [
        ("pipe", "result.json", "not a regular file"),
        ("link", "result.json", "symbolic links"),
        ("flood", "result.json", "more than 8388608 bytes"),
        ("fill", "result.json", "more than 8388608 bytes"),
        ("folder", "result.json", "not a regular file"),
        ("socket", "result.json", "cannot read the result"),
        ("device", "result.json", "result.json"),
        ("detour", "own/environ", "cannot read the result"),
    ] {
        let bench = Bench::hostile(&["attack", name, path]).with("/workload/output/path", json!(path));
        let start = Instant::now();
        let (kept, output) = bench.besieged(hello());
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        assert_message(&kept.attempts()[1], Outcome::Malformed, &[words]);
        assert!(start.elapsed() < Duration::from_secs(20), "{name} blocked the runner");
    }
}

pub(super) fn killing_the_runner_does_not_hide_the_trial() {
    for (action, last) in [("stop", Some("another process of the pod sent it SIGTERM")), ("kill", None)] {
        let (kept, output) = Bench::hostile(&["attack", action, "-"]).besieged(hello());
        assert!(!output.status.success(), "{action}");
        assert_eq!((kept.of("started").len(), kept.of("attempt").len()), (2, 1), "{action}: the start is recorded");
        assert_eq!(kept.of("failed").first().and_then(|reason| reason.as_str()), last, "{action}");
        assert!(kept.of("stopped").is_empty(), "{action}: no stop from outside is reported");
    }
}

pub(super) fn changed_runner_attributes_are_not_inherited() {
    for (action, kept_from_it) in [
        ("files", None),
        ("cpus", None),
        ("disk", None),
        ("batch", None),
        // An attribute that only root could restore ends the block; its other trials run in another pod.
        ("all files", Some("limit Nofile")),
        ("idle", Some("priority")),
    ] {
        let mut bench = Bench::hostile(&["handicap", action]);
        bench.wave["cells"][0]["argv"][2] = json!("inherited");
        let (kept, output) = bench.besieged(hello());
        let (attempts, reason) = (kept.attempts(), kept.of("failed").first().and_then(|reason| reason.as_str()));
        assert_eq!(output.status.success(), kept_from_it.is_none(), "{action}: {}", stderr(&output));
        if let Some(named) = kept_from_it {
            assert_eq!((kept.of("started").len(), attempts.len()), (2, 1), "{action}: only that trial failed");
            assert!(
                reason.is_some_and(|reason| reason.contains("cannot be restored") && reason.contains(named)),
                "{reason:?}"
            );
            continue;
        }
        assert!(attempts[0].stderr_tail.as_deref().is_some_and(|said| said.contains("Max open files")), "{action}");
        assert_eq!(attempts[2].stderr_tail, attempts[0].stderr_tail, "{action}: as before the hostile trial");
    }
}

pub(super) fn trial_that_killed_an_execution_is_not_retried() {
    let mut told = hello();
    told["ended"] = json!({"w000-b0003-s00001": "pod_0/w000-b0003-s00001: killed for memory"});
    let (kept, output) = Bench::hostile(&["ok"]).besieged(told);
    assert!(output.status.success(), "{}", stderr(&output));
    let attempts = kept.attempts();
    assert_message(&attempts[1], Outcome::Failed, &["terminated an earlier execution", "killed for memory"]);
    assert_eq!(attempts[1].noise.during.steal_ratio, None, "nothing ran");
    assert_eq!(kept.of("started").len(), 2, "it was not begun");
    assert_message(&attempts[2], Outcome::Succeeded, &[]);
}

pub(super) fn runner_without_keeper_stops() {
    let bench = Bench::hostile(&["ok"]);
    let (kept, output) = bench.besieged(json!({"keeper": "another protocol", "executor": "pod_1"}));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("another protocol") && kept.of("started").is_empty());

    let (kept, output) = bench.besieged(json!({"refused": "this execution was started before"}));
    let said = stderr(&output);
    assert!(!output.status.success() && kept.of("started").is_empty(), "{said}");
    assert!(said.contains("the keeper rejected the block: this execution was started before"), "{said}");
}
