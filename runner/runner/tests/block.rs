//! Tests of the built runner with real processes.
//!
//! This executable contains the tests. With the argument `testee` it is the workload of their trials.

mod attacks;
mod kernel;
mod roles;
mod scratch;
mod steps;
mod testee;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use assay_schema::Attempt;
use assay_schema::attempt::{NoiseWindow, Outcome};
use assay_schema::wave::Wave;
use jsonschema::{Draft, Resource, Validator};
use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};
use tempfile::TempDir;

fn main() {
    if std::env::args_os().nth(1).is_some_and(|first| first == "testee") {
        return testee::main();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if assay_neighbour::killed::help(&arguments).expect("the helper's part") {
        return;
    }
    macro_rules! tests {
        ($($($part:ident)::+),+ $(,)?) => {
            vec![$(Trial::test(stringify!($($part)::+).replace(' ', ""), || { $($part)::+(); Ok(()) })),+]
        };
    }
    let tests = tests![
        every_slot_and_warm_up_gets_one_attempt,
        a_failing_trial_does_not_stop_the_block,
        arguments_and_environment_arrive_verbatim,
        the_environment_is_clean,
        inherited_variables_reach_trials_and_only_listed_values_attempts,
        files_of_one_arm_are_invisible_to_another,
        prepared_data_is_retained_by_arm,
        a_hanging_trial_is_killed_with_its_descendants,
        orphans_are_killed_without_blocking_the_block,
        malformed_output_is_reported_with_position,
        the_output_of_another_tool_becomes_a_result,
        a_relative_path_is_below_a_folder_of_the_trial,
        endless_output_is_cut_off,
        an_attempt_is_no_larger_than_the_keeper_takes,
        large_standard_error_retains_its_tail,
        the_result_can_come_from_a_file,
        stale_result_file_is_removed,
        peak_memory_excludes_the_runner,
        each_trial_is_alone_in_its_process_group,
        sigterm_stops_immediately_and_retains_attempts,
        sigterm_lets_the_running_trial_finish_within_its_time,
        killed_runner_kills_its_trial,
        an_existing_attempt_is_never_overwritten,
        bad_input_names_file_and_field,
        an_unwritable_attempt_is_the_runners_failure,
        the_lease_in_force_is_recorded,
        install_makes_a_runnable_copy,
        block_with_unmet_requirements_runs_no_trial,
        block_with_met_requirements_runs,
        the_null_arm_runs_a_copy_of_the_program,
        a_program_that_cannot_be_copied_is_not_run_by_the_null_arm,
        attempts_have_the_adjacent_probes,
        canary_covers_the_trials_footprint,
        a_short_trial_has_shares_of_cpu_time_too,
        address_space_layout_stays_random,
        probe_prints_what_a_block_would_record,
        the_bench_prints_its_figures,
        attacks::attacks_on_the_runner_and_its_keeper_fail,
        attacks::trials_are_announced_before_and_stored_after_execution,
        attacks::a_changed_program_of_another_arm_is_a_named_failure,
        attacks::a_daemon_does_not_outlive_its_trial,
        attacks::write_protected_files_are_removed,
        attacks::special_files_are_not_results,
        attacks::killing_the_runner_does_not_hide_the_trial,
        attacks::changed_runner_attributes_are_not_inherited,
        attacks::trial_that_killed_an_execution_is_not_retried,
        attacks::runner_without_keeper_stops,
        kernel::every_way_to_be_killed_fails_the_trial,
        kernel::an_orphan_killed_late_is_never_taken_for_one_that_the_runner_killed,
        kernel::helpers_stopped_by_the_program_or_the_runner_are_no_deaths,
        kernel::oom_kill_in_its_own_cgroup_fails_the_trial,
        kernel::pid_limit_of_its_own_cgroup_fails_the_trial,
        kernel::oom_kill_in_a_shared_cgroup_is_unknown,
        roles::a_server_that_crashes_at_its_end_fails_the_trial,
        roles::processes_of_an_ended_server_are_killed_by_the_runner,
        roles::a_server_is_ready_before_its_client_and_ended_after_it,
        roles::roles_find_each_other_by_variables,
        roles::readiness_can_be_a_line_or_a_file,
        roles::a_server_that_never_becomes_ready_fails_its_trial,
        roles::a_server_that_ends_early_fails_its_trial_and_not_the_block,
        roles::server_may_exit_with_code_0_after_readiness,
        roles::a_server_that_cannot_be_started_is_named,
        roles::a_server_that_ignores_sigterm_is_killed_with_its_descendants,
        roles::sigterm_while_a_server_gets_ready_stops_at_once,
        roles::roles_have_exclusive_cpus_if_available,
        roles::arms_run_the_programs_of_their_images,
        steps::every_trial_has_one_prepare_before_and_one_conclude_after_it,
        steps::failed_prepare_breaks_the_setup_and_never_fails_an_arm,
        steps::failed_conclude_keeps_its_trial_and_ends_the_block,
        steps::interrupted_trial_is_concluded,
        steps::steps_of_the_run_have_the_variables_of_their_cell,
        steps::invalid_steps_run_nothing,
        scratch::disk_is_bounded_in_every_way_of_writing,
        scratch::memory_is_bounded_and_a_full_one_fails_the_trial,
        scratch::other_places_refuse_writes,
        scratch::service_that_fills_the_disk_fails_its_trial,
        scratch::trial_below_the_limit_succeeds_and_the_fingerprint_has_the_medium,
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// A wave builder with a folder for all files of the test.
struct Bench {
    folder: TempDir,
    wave: Value,
}

impl Bench {
    /// One cell per argument list, each run once, in order.
    fn new(cells: &[&[&str]]) -> Self {
        let own = std::env::current_exe().expect("own path").display().to_string();
        let cells: Vec<Value> = cells
            .iter()
            .map(|arguments| {
                let argv: Vec<&str> = [own.as_str(), "testee"].into_iter().chain(arguments.iter().copied()).collect();
                json!({"point": 0, "arm": 0, "argv": argv, "env": {}, "parameters": {"a": "1"}})
            })
            .collect();
        let order: Vec<usize> = (0..cells.len()).collect();
        let wave = json!({
            "schema": "assay.dev/wave/v1alpha1",
            "run": {"namespace": "", "name": "test", "uid": "u-1"},
            "experiment": format!("sha256:{}", "0".repeat(64)),
            "wave": 0,
            "purpose": "screen",
            "workload": {"output": {"format": "AssayResult"}, "timeoutSeconds": 30},
            "points": [{"key": "batchSize=8", "parameters": {"batchSize": "8"}}],
            "arms": [{"name": "loop", "baseline": true}],
            "cells": cells,
            "blocks": [{"id": "w000-b0003", "order": order}],
        });
        Self { folder: tempfile::tempdir().expect("a folder"), wave }
    }

    fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = self.wave.pointer_mut(parent).expect("the parent exists");
        match key.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[key] = value,
        }
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn command(&self, more: &[&str]) -> Command {
        fs::write(self.path("wave.json"), self.wave.to_string()).expect("the wave is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay-runner"));
        command.args(["block", "--block", "w000-b0003", "--executor", "pod-1", "--wave"]).arg(self.path("wave.json"));
        command.arg("--out").arg(self.path("out")).args(more);
        // A killed runner does not remove its trial's folder.
        command.env("TMPDIR", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the block successfully and returns its attempts, in order, and its log.
    fn run(&self) -> (Vec<Attempt>, String) {
        let output = self.command(&[]).output().expect("the runner starts");
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        (self.attempts(), said)
    }

    /// Reads and validates the written attempts.
    fn attempts(&self) -> Vec<Attempt> {
        let validator = attempt_validator();
        let entries = fs::read_dir(self.path("out")).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        // Warm-ups sort first.
        files.sort_by_key(|file| file.display().to_string().replace("-w0", "-a0"));
        files
            .iter()
            .map(|file| {
                let text = fs::read(file).expect("readable");
                let value: Value = serde_json::from_slice(&text).expect("JSON");
                let errors: Vec<_> =
                    validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path)).collect();
                assert!(errors.is_empty(), "{}: {errors:?}", file.display());
                let attempt: Attempt = assay_schema::read(&text).expect("the types agree");
                assert_eq!(file.file_stem().and_then(|stem| stem.to_str()), Some(attempt.trial.as_str()));
                attempt
            })
            .collect()
    }
}

fn attempt_validator() -> Validator {
    let mut options = jsonschema::options().with_draft(Draft::Draft202012);
    for text in [assay_schema::WAVE_SCHEMA, assay_schema::RESULT_SCHEMA] {
        let schema: Value = serde_json::from_str(text).expect("JSON");
        let id = schema["$id"].as_str().expect("an id").to_owned();
        options = options.with_resource(id, Resource::from_contents(schema).expect("a resource"));
    }
    options.build(&serde_json::from_str(assay_schema::ATTEMPT_SCHEMA).expect("JSON")).expect("a schema")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn assert_message(attempt: &Attempt, outcome: Outcome, words: &[&str]) {
    assert_eq!(attempt.outcome, outcome, "{attempt:?}");
    let message = attempt.message.as_deref().unwrap_or("");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert_eq!(attempt.message.is_none(), outcome == Outcome::Succeeded);
    assert_eq!(attempt.result.is_some(), outcome == Outcome::Succeeded);
}

/// Waits for a condition.
#[track_caller]
fn wait_for<T>(condition_name: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < give_up, "timed out waiting for {condition_name}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Process ids that testees wrote to a folder.
fn noted_pids(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).expect("the folder").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("pid-")?.parse().ok()).collect()
}

fn is_running(pid: i32) -> bool {
    // A zombie does not run unless it has further threads.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') || threads() > 1)
}

fn every_slot_and_warm_up_gets_one_attempt() {
    let bench = Bench::new(&[&["ok"], &["ok"]])
        .with("/blocks/0/warmup", json!([1]))
        .with("/blocks/0/order", json!([0, 1, 1, 0]))
        .with("/blocks/0/lease", json!({"node": "node-a", "token": 7}))
        .with("/workload/parityRequired", json!(true))
        .with("/workload/image", json!("example/image:1"));
    let (attempts, said) = bench.run();
    let trials: Vec<&str> = attempts.iter().map(|attempt| attempt.trial.as_str()).collect();
    let expected = ["w00000", "s00000", "s00001", "s00002", "s00003"].map(|slot| format!("w000-b0003-{slot}"));
    assert_eq!(trials, expected);
    assert_eq!(attempts.iter().map(|attempt| attempt.slot).collect::<Vec<_>>(), [0, 0, 1, 2, 3]);
    assert_eq!(attempts.iter().filter(|attempt| attempt.warmup).count(), 1);
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
        assert_eq!(attempt.id, format!("pod-1/{}", attempt.trial));
        assert_eq!((attempt.point.as_str(), attempt.arm.as_str()), ("batchSize=8", "loop"));
        assert_eq!(attempt.lease.as_ref().map(|lease| lease.token), Some(7));
        assert_eq!(attempt.exit_code, Some(0));
        assert!(attempt.duration_seconds > 0.0);
        assert!(attempt.resources.user_seconds.is_some() && attempt.resources.minor_faults > Some(0));
        assert!(attempt.isolation.cpus_allowed.is_some() && attempt.isolation.reason.is_some());
        assert!(attempt.noise.before.spin_seconds.is_some() && attempt.noise.after.spin_seconds.is_some());
        assert!(attempt.noise.during.window_seconds >= Some(attempt.duration_seconds));
        assert!(attempt.environment.hard.contains_key("kernelRelease"));
        assert!(attempt.environment.soft.contains_key("image"));
        let parity = attempt.result.as_ref().and_then(|result| result.parity.as_ref());
        assert!(parity.is_some(), "the result is recorded as it was printed");
    }
    assert!(attempts.windows(2).all(|pair| pair[0].started_at < pair[1].started_at));
    assert!(said.contains("w000-b0003 w00000/1 loop batchSize=8 succeeded"), "{said}");
    assert!(said.contains("w000-b0003 s00003/4 loop batchSize=8 succeeded"), "{said}");
    assert!(said.contains("done: 5 trials (5 succeeded); overhead"), "{said}");
}

fn a_failing_trial_does_not_stop_the_block() {
    let fail = ["fail", "3", "cannot open data set"];
    let mut bench = Bench::new(&[&fail, &["ok"], &["abort"], &["ok"], &["ok"], &["ok"], &["ok"]]);
    let data = bench.text("data");
    fs::write(&data, "echo this is no program\n").expect("written");
    let script = bench.text("script");
    fs::write(&script, "echo a shell ran this\n").expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
    for (cell, program) in [(3, "/no/such/program"), (4, "no-such-program-in-path"), (5, &data), (6, &script)] {
        bench.wave["cells"][cell]["argv"] = json!([program]);
    }
    let (attempts, _) = bench.run();
    assert_eq!(attempts.len(), 7);
    assert_message(&attempts[0], Outcome::Failed, &["code 3", "cannot open data set"]);
    assert_eq!((attempts[0].exit_code, attempts[0].signal), (Some(3), None));
    assert_eq!(attempts[0].stderr_tail.as_deref(), Some("cannot open data set\n"));
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
    assert_message(&attempts[2], Outcome::Failed, &["signal 6", "SIGABRT"]);
    assert_eq!((attempts[2].exit_code, attempts[2].signal), (None, Some(6)));
    assert_message(&attempts[3], Outcome::Failed, &["/no/such/program", "No such file", "the image contains"]);
    assert_eq!(attempts[3].resources, Default::default());
    assert_message(&attempts[4], Outcome::Failed, &["no-such-program-in-path", "PATH"]);
    assert_message(&attempts[5], Outcome::Failed, &["/data", "Permission denied"]);
    assert_message(&attempts[6], Outcome::Failed, &["/script", "not a program for this machine"]);
}

fn arguments_and_environment_arrive_verbatim() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/fixtures/valid/wave-verbatim.json");
    let fixture: Wave = assay_schema::read(&fs::read(fixture).expect("the fixture")).expect("a valid wave");
    let cell = &fixture.cells[0];
    assert!(cell.argv.iter().any(|argument| argument.contains("{{workflow.name}}")));

    let mut bench = Bench::new(&[&["dump"]]);
    let dump = bench.text("dump {{workflow.name}} $(touch x).json");
    let argv = bench.wave["cells"][0]["argv"].as_array_mut().expect("a list");
    argv.push(json!(dump));
    argv.extend(cell.argv[1..].iter().map(|argument| json!(argument)));
    bench.wave["cells"][0]["env"] = json!(cell.env);
    bench.wave["cells"][0]["parameters"] = json!(cell.parameters);
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    let seen: (Vec<String>, BTreeMap<String, String>) =
        serde_json::from_slice(&fs::read(&dump).expect("the dump")).expect("JSON");
    assert_eq!(seen.0[1..], cell.argv[1..]);
    for (name, value) in &cell.env {
        assert_eq!(seen.1.get(name), Some(value));
    }
    assert_eq!(attempts[0].argv[4..], cell.argv[1..], "and the record has them too");
    assert_eq!(attempts[0].parameters, cell.parameters);
    let made: Vec<String> = fs::read_dir(bench.folder.path())
        .expect("the folder")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    assert_eq!(made.len(), 3, "wave, out and dump only; nothing was expanded: {made:?}");
}

fn the_environment_is_clean() {
    let mut bench = Bench::new(&[&["dump"]]).with("/blocks/0/warmup", json!([0]));
    let dump = bench.text("dump.json");
    bench.wave["cells"][0]["argv"].as_array_mut().expect("a list").push(json!(dump));
    bench.wave["cells"][0]["env"] = json!({"MODE": "fast", "HOME": "/elsewhere", "ASSAY_TRIAL": "forged"});
    let output = bench.command(&[]).env("LEAK", "1").env("PATH", "/usr/bin:/bin").output().expect("the runner starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, mut seen): (Vec<String>, BTreeMap<String, String>) =
        serde_json::from_slice(&fs::read(&dump).expect("the dump")).expect("JSON");
    let folder = seen.remove("TMPDIR").expect("it is told where to write");
    assert!(folder.contains("/.assay-trial-w000-b0003-s00000-") && !Path::new(&folder).exists(), "{folder}");
    let expected = [
        ("ASSAY_TRIAL", "w000-b0003-s00000"),
        ("ASSAY_WARMUP", "false"),
        ("HOME", "/elsewhere"),
        ("MODE", "fast"),
        ("PATH", "/usr/bin:/bin"),
    ];
    assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

/// A block with two arms that alternate; each command gets the arm's name.
fn two_arms(command: &str) -> Bench {
    Bench::new(&[&[command, "old"], &[command, "new"]])
        .with("/arms", json!([{"name": "old", "baseline": true}, {"name": "new", "baseline": false}]))
        .with("/cells/1/arm", json!(1))
        .with("/blocks/0/warmup", json!([1, 0]))
        .with("/blocks/0/order", json!([1, 0, 0, 1]))
}

fn inherited_variables_reach_trials_and_only_listed_values_attempts() {
    let inherited =
        json!({"names": ["OMP_NUM_THREADS", "TOKEN", "OWN", "ABSENT"], "recorded": ["OMP_NUM_THREADS", "ABSENT"]});
    let bench = Bench::new(&[&["reveal", "OMP_NUM_THREADS", "TOKEN", "OWN", "OTHER"]])
        .with("/workload/inherited", inherited)
        .with("/cells/0/env", json!({"OWN": "of the cell"}));
    let mut command = bench.command(&[]);
    command.env("OMP_NUM_THREADS", "3").env("TOKEN", "a-secret").env("OWN", "of the caller").env("OTHER", "not-listed");
    let output = command.output().expect("the runner starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let attempts = bench.attempts();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    let tail = attempts[0].stderr_tail.as_deref().expect("its standard error");
    assert_eq!(tail, "OMP_NUM_THREADS=3\nTOKEN=[TOKEN]\nOWN=of the cell\nOTHER=\n");
    let soft = &attempts[0].environment.soft;
    assert_eq!(soft["env.OMP_NUM_THREADS"], "3".into());
    assert!(soft.contains_key("inheritedEnvironment") && !soft.contains_key("env.TOKEN"), "{soft:?}");
    for file in fs::read_dir(bench.path("out")).expect("the folder").flatten() {
        let text = fs::read_to_string(file.path()).expect("readable");
        assert!(!text.contains("a-secret") && !text.contains("of the caller"), "{text}");
    }
}

fn files_of_one_arm_are_invisible_to_another() {
    let bench = two_arms("plant");
    let temporary = tempfile::tempdir().expect("a folder");
    let output = bench.command(&[]).env("TMPDIR", temporary.path()).output();
    let output = output.expect("the runner starts");
    assert!(output.status.success(), "{}", stderr(&output));
    for attempt in bench.attempts() {
        assert_message(&attempt, Outcome::Succeeded, &[]);
        assert_eq!(attempt.stderr_tail, None, "{} {} finds files of an earlier trial", attempt.trial, attempt.arm);
    }
    assert_eq!(fs::read_dir(temporary.path()).expect("list").count(), 0, "nothing is left");
}

fn prepared_data_is_retained_by_arm() {
    let (attempts, _) = two_arms("prepare").run();
    for attempt in &attempts {
        assert_eq!(attempt.outcome, Outcome::Failed, "nothing is kept that was not declared");
    }
    let (attempts, _) = two_arms("prepare").with("/workload/prepares", json!(true)).run();
    let found: Vec<(&str, Option<&str>)> =
        attempts.iter().map(|attempt| (attempt.arm.as_str(), attempt.stderr_tail.as_deref())).collect();
    let (old, new) = (("old", Some("found old\n")), ("new", Some("found new\n")));
    assert_eq!(found, [("new", None), ("old", None), new, old, old, new], "the first trial of an arm prepares it");
}

fn a_hanging_trial_is_killed_with_its_descendants() {
    let mut bench = Bench::new(&[&["hang"], &["ok"]]).with("/workload/timeoutSeconds", json!(1.5));
    let notes = bench.folder.path().display().to_string();
    bench.wave["cells"][0]["argv"].as_array_mut().expect("a list").push(json!(notes));
    let start = Instant::now();
    let (attempts, said) = bench.run();
    assert_message(&attempts[0], Outcome::TimedOut, &["1.5 s", "killed", "3 descendant processes"]);
    assert!((1.5..10.0).contains(&attempts[0].duration_seconds), "{}", attempts[0].duration_seconds);
    assert_eq!(attempts[0].signal, Some(9));
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
    assert!(start.elapsed() < Duration::from_secs(20), "{said}");
    let pids = noted_pids(bench.folder.path());
    assert_eq!(pids.len(), 4, "the trial, a child in its group, and two in separate sessions");
    for pid in pids {
        assert!(!is_running(pid), "process {pid} escaped");
    }
}

fn orphans_are_killed_without_blocking_the_block() {
    let mut bench = Bench::new(&[&["leave"], &["ok"]]);
    let notes = bench.folder.path().display().to_string();
    bench.wave["cells"][0]["argv"].as_array_mut().expect("a list").push(json!(notes));
    let (attempts, said) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert!(attempts[0].duration_seconds < 20.0, "the time limit is 30 s");
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
    assert!(said.contains("killed 3 processes of the trial that were still running"), "{said}");
    for pid in noted_pids(bench.folder.path()) {
        assert!(!is_running(pid), "process {pid} escaped");
    }
}

fn malformed_output_is_reported_with_position() {
    let bench =
        Bench::new(&[&["print", "elapsed: 3 s"], &["partial"], &["print", ""], &["invalid"], &["twice"], &["ok"]]);
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Malformed, &["standard output", "line 1, column 1", "elapsed: 3 s"]);
    assert_message(&attempts[1], Outcome::Malformed, &["ends in the middle of the result", "line 1"]);
    assert_message(&attempts[2], Outcome::Malformed, &["standard output is empty"]);
    assert_message(&attempts[3], Outcome::Malformed, &["field metrics.latency.samples[1]", "line 1"]);
    assert_message(&attempts[4], Outcome::Malformed, &["trailing characters", "line 2"]);
    assert!(attempts[..5].iter().all(|attempt| attempt.exit_code == Some(0)));

    let bench = Bench::new(&[&["no-parity"]]);
    assert_message(&bench.run().0[0], Outcome::Succeeded, &[]);
    let bench = Bench::new(&[&["no-parity"]]).with("/workload/parityRequired", json!(true));
    assert_message(&bench.run().0[0], Outcome::Malformed, &["field parity", "missing"]);
}

fn endless_output_is_cut_off() {
    let (attempts, _) = Bench::new(&[&["endless"], &["ok"]]).run();
    assert_message(&attempts[0], Outcome::Malformed, &["more than 8388608 bytes"]);
    assert!(attempts[0].duration_seconds < 20.0, "it did not wait for the time limit of 30 s");
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
}

fn an_attempt_is_no_larger_than_the_keeper_takes() {
    let bench = Bench::new(&[&["grow"], &["ok"]]);
    let (attempts, _) = bench.run();
    assert_message(
        &attempts[0],
        Outcome::Malformed,
        &["attempt is 2", " bytes", "16777216 are allowed", "fewer samples"],
    );
    assert_eq!(attempts[0].exit_code, Some(0));
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
    for file in fs::read_dir(bench.path("out")).expect("the folder").flatten() {
        assert!(file.metadata().expect("there").len() <= assay_schema::attempt::MOST_ATTEMPT as u64);
    }
}

fn large_standard_error_retains_its_tail() {
    let (attempts, _) = Bench::new(&[&["flood"]]).run();
    assert_message(&attempts[0], Outcome::Failed, &["code 1", "line 99999"]);
    let tail = attempts[0].stderr_tail.as_deref().expect("a tail");
    assert_eq!(tail.len(), 16_384);
    assert!(tail.ends_with("line 99998\nline 99999\n"));
}

fn the_result_can_come_from_a_file() {
    let mut bench = Bench::new(&[&["file"], &["file"]]);
    let file = bench.text("result {{workflow.name}}.json");
    for cell in 0..2 {
        bench.wave["cells"][cell]["argv"].as_array_mut().expect("a list").push(json!(file));
    }
    bench.wave["workload"]["output"]["path"] = json!(file);
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_message(&attempts[1], Outcome::Succeeded, &[]);
    assert_eq!(attempts[0].stderr_tail.as_deref(), Some("chatter on standard output\n"));
}

fn the_output_of_another_tool_becomes_a_result() {
    let report = "BenchmarkJoin/way=plus-2 \t 100\t 250 ns/op\nPASS";
    let mut bench = Bench::new(&[&["print", report], &["print", "FAIL"], &["fail", "1", "no memory"]]);
    let latency = json!({"name": "latency", "unit": "s", "benchmark": "BenchmarkJoin/way=plus"});
    bench.wave["workload"]["output"] = json!({"format": "GoBench", "metrics": [latency]});
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    let metric = &attempts[0].result.as_ref().expect("a result").metrics["latency"];
    assert_eq!(metric.reading, assay_schema::result::Reading::Samples(vec![250.0 / 1e9]));
    assert_eq!(attempts[0].output.as_ref().expect("kept")[0].text, format!("{report}\n"));
    assert_message(&attempts[1], Outcome::Malformed, &["standard output, line 1", "FAIL"]);
    assert_eq!(attempts[1].output.as_ref().expect("kept")[0].text, "FAIL\n");
    assert_message(&attempts[2], Outcome::Failed, &["code 1", "no memory"]);
}

fn a_relative_path_is_below_a_folder_of_the_trial() {
    let mut bench = Bench::new(&[&["file", "made/result.json"], &["print", "nothing"]]);
    bench.wave["workload"]["output"]["path"] = json!("made/result.json");
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_message(&attempts[1], Outcome::Malformed, &["did not write made/result.json"]);
    assert!(!Path::new("made").exists(), "the trial does not start where the runner did");
}

fn stale_result_file_is_removed() {
    let mut bench = Bench::new(&[&["file"], &["print", "chatter"], &["ok"]]);
    let file = bench.text("result.json");
    bench.wave["cells"][0]["argv"].as_array_mut().expect("a list").push(json!(file));
    bench.wave["workload"]["output"]["path"] = json!(file);
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_message(&attempts[1], Outcome::Malformed, &["did not write", "result.json"]);

    // An earlier result that cannot be removed cannot be distinguished from a new one.
    fs::remove_dir_all(bench.path("out")).expect("removed");
    fs::create_dir(bench.path("result.json")).expect("a folder in the way");
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::NotStarted, &["cannot remove", "result.json"]);
}

fn peak_memory_excludes_the_runner() {
    let (attempts, _) = Bench::new(&[&["ok"], &["memory", "100"], &["ok"]]).run();
    let peak = |i: usize| attempts[i].resources.max_rss_bytes;
    assert!((100 << 20..130 << 20).contains(&peak(1).expect("large enough to be seen")), "{:?}", peak(1));
    // The runner's own probes use 32 MiB, which must not be visible. A program smaller than the runner is detected; on
    // more CPUs the kernel's counters are too coarse for it.
    let few_cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() <= 64);
    for small in [0, 2] {
        let is_plausible = peak(small).map_or(!few_cpus, |bytes| (1 << 20..20 << 20).contains(&bytes));
        assert!(is_plausible, "{:?}", peak(small));
    }
}

fn each_trial_is_alone_in_its_process_group() {
    // The testee succeeds only as leader of its group, with an empty standard input.
    let (attempts, _) = Bench::new(&[&["leader"], &["leader"]]).run();
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
    }
}

fn sigterm_stops_immediately_and_retains_attempts() {
    for (signal, code) in [(rustix::process::Signal::TERM, 143), (rustix::process::Signal::INT, 130)] {
        let mut bench = Bench::new(&[&["ok"], &["hang"], &["ok"]]);
        let notes = bench.folder.path().display().to_string();
        bench.wave["cells"][1]["argv"].as_array_mut().expect("a list").push(json!(notes));
        let runner: Child = bench.command(&["--finish-seconds", "0"]).spawn().expect("the runner starts");
        let pids =
            wait_for("the second trial", || Some(noted_pids(bench.folder.path())).filter(|pids| pids.len() == 4));
        let asked = Instant::now();
        rustix::process::kill_process(rustix::process::Pid::from_child(&runner), signal).expect("sent");
        let output = runner.wait_with_output().expect("the runner ends");
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert!(stderr(&output).contains("after 1 of 3 trials"), "{}", stderr(&output));
        let attempts = bench.attempts();
        assert_eq!(attempts.len(), 1, "the trial that was stopped says nothing about the workload");
        assert_message(&attempts[0], Outcome::Succeeded, &[]);
        for pid in pids {
            assert!(!is_running(pid), "process {pid} escaped");
        }
    }
}

fn sigterm_lets_the_running_trial_finish_within_its_time() {
    // The second trial ends by its timeout, and then the block stops. With less time it is abandoned.
    for (finish, done, abandoned) in [("30", 2, false), ("1", 1, true)] {
        let mut bench = Bench::new(&[&["ok"], &["hang"], &["ok"]]).with("/workload/timeoutSeconds", json!(3));
        let notes = bench.folder.path().display().to_string();
        bench.wave["cells"][1]["argv"].as_array_mut().expect("a list").push(json!(notes));
        let runner: Child = bench.command(&["--finish-seconds", finish]).spawn().expect("the runner starts");
        wait_for("the second trial", || Some(noted_pids(bench.folder.path())).filter(|pids| pids.len() == 4));
        let term = rustix::process::Signal::TERM;
        rustix::process::kill_process(rustix::process::Pid::from_child(&runner), term).expect("sent");
        let output = runner.wait_with_output().expect("the runner ends");
        assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
        let attempts = bench.attempts();
        assert_eq!(attempts.len(), done, "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("after {done} of 3 trials")), "{}", stderr(&output));
        assert_eq!(attempts.iter().any(|attempt| attempt.outcome == Outcome::TimedOut), !abandoned);
    }
}

fn killed_runner_kills_its_trial() {
    let mut bench = Bench::new(&[&["ok"], &["hang"]]);
    let notes = bench.folder.path().display().to_string();
    bench.wave["cells"][1]["argv"].as_array_mut().expect("a list").push(json!(notes));
    let mut runner = bench.command(&[]).stderr(Stdio::null()).spawn().expect("the runner starts");
    let pids = wait_for("the second trial", || Some(noted_pids(bench.folder.path())).filter(|pids| pids.len() == 4));
    let child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parent == Some(runner.id())
    };
    let (trial, descendants): (Vec<i32>, Vec<i32>) = pids.iter().partition(|pid| child(pid));
    assert_eq!(trial.len(), 1);
    runner.kill().expect("killed");
    runner.wait().expect("reaped");
    wait_for("the trial's end", || (!is_running(trial[0])).then_some(()));
    // Outside of a pod these are not killed; in a pod they end with its PID namespace.
    for pid in descendants {
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    }
    assert_eq!(bench.attempts().len(), 1, "the first attempt is intact, and nothing half-written looks like one");
}

fn an_existing_attempt_is_never_overwritten() {
    let bench = Bench::new(&[&["ok"], &["ok"]]);
    bench.run();
    let before = fs::read(bench.path("out/w000-b0003-s00001.json")).expect("an attempt");
    fs::remove_file(bench.path("out/w000-b0003-s00000.json")).expect("removed");
    let output = bench.command(&[]).output().expect("the runner starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("w000-b0003-s00001.json exists already"), "{}", stderr(&output));
    assert_eq!(fs::read(bench.path("out/w000-b0003-s00001.json")).expect("an attempt"), before);
    assert!(!bench.path("out/w000-b0003-s00000.json").exists(), "nothing was run");
}

fn bad_input_names_file_and_field() {
    let refused = |bench: &Bench, more: &[&str], words: &[&str]| {
        let output = bench.command(more).output().expect("the runner starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(bench.attempts().is_empty());
    };
    let ok = || Bench::new(&[&["ok"]]);
    refused(&ok().with("/workload/timeoutSeconds", json!("3s")), &[], &["wave.json", "workload.timeoutSeconds", "3s"]);
    refused(&ok().with("/experiment", json!("latest")), &[], &["wave.json", "field experiment", "latest"]);
    refused(&ok().with("/extra", json!(1)), &[], &["wave.json", "unknown field `extra`"]);
    refused(
        &ok().with("/schema", json!("assay.dev/wave/v9")),
        &[],
        &["wave.json", "field schema", "assay.dev/wave/v9"],
    );
    refused(&ok().with("/blocks/0/order", json!([0, 5])), &[], &["blocks[0].order[1]", "no cell 5"]);
    refused(&ok().with("/blocks/0/id", json!("w000-b0000")), &[], &["w000-b0003", "the wave has w000-b0000"]);
    let bench = ok();
    refused(&bench, &["--lease-file", &bench.text("none.json")], &["none.json", "No such file"]);
    fs::write(bench.path("lease.json"), r#"{"node": "a", "token": "7"}"#).expect("written");
    refused(&bench, &["--lease-file", &bench.text("lease.json")], &["lease.json", "field token"]);

    let output = Command::new(env!("CARGO_BIN_EXE_assay-runner"))
        .args(["block", "--block", "w000-b0003", "--executor", "a/b", "--wave", "/none/wave.json", "--out", "/none"])
        .output()
        .expect("the runner starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--executor \"a/b\""), "{}", stderr(&output));
}

fn an_unwritable_attempt_is_the_runners_failure() {
    let mut bench = Bench::new(&[&["ok"], &["remove"], &["ok"]]);
    let out = bench.text("out");
    bench.wave["cells"][1]["argv"].as_array_mut().expect("a list").push(json!(out));
    let output = bench.command(&[]).output().expect("the runner starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write the attempt"), "{}", stderr(&output));
    assert!(stderr(&output).contains("w000-b0003-s00001.json"), "{}", stderr(&output));
}

fn the_lease_in_force_is_recorded() {
    let bench = Bench::new(&[&["ok"]]).with("/blocks/0/lease", json!({"node": "node-a", "token": 7}));
    fs::write(bench.path("lease.json"), "{\"node\": \"node-a\", \"token\": 12}\n").expect("written");
    let output = bench.command(&["--lease-file", &bench.text("lease.json")]).output().expect("the runner starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(bench.attempts()[0].lease.as_ref().map(|lease| lease.token), Some(12));
}

fn install_makes_a_runnable_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let runner = env!("CARGO_BIN_EXE_assay-runner");
    let installed = Command::new(runner).args(["install", "--to"]).arg(folder.path()).output().expect("it starts");
    assert!(installed.status.success(), "{}", stderr(&installed));
    let copy = Command::new(folder.path().join("assay-runner")).arg("--version").output().expect("the copy starts");
    assert_eq!(copy.stdout, Command::new(runner).arg("--version").output().expect("it starts").stdout);
}

fn block_with_unmet_requirements_runs_no_trial() {
    let require = json!({"require": {"aslr": "7", "architecture": std::env::consts::ARCH, "noSuchKey": "1"}});
    let mut bench = Bench::new(&[&["ok"], &["ok"]]).with("/environment", require);
    bench.wave["blocks"][0]["warmup"] = json!([0]);
    let (attempts, said) = bench.run();
    assert_eq!(attempts.len(), 3);
    for attempt in &attempts {
        assert_message(
            attempt,
            Outcome::NotStarted,
            &["aslr is \"", "must be \"7\"", "noSuchKey must be \"1\"", "does not report it"],
        );
        assert!(!attempt.message.as_deref().unwrap_or("").contains("architecture"), "that one is as required");
    }
    assert!(said.contains("runs no trial"), "{said}");

    // A test cannot prove that its CPUs are exclusive.
    let isolation = json!({"isolation": "ExclusiveCPUs"});
    let (attempts, _) = Bench::new(&[&["ok"]]).with("/environment", isolation).run();
    if attempts[0].isolation.level != assay_schema::attempt::IsolationLevel::ExclusiveCpus {
        assert_message(&attempts[0], Outcome::NotStarted, &["isolation is", "must be ExclusiveCPUs"]);
    }
}

fn block_with_met_requirements_runs() {
    let require = json!({"require": {"architecture": std::env::consts::ARCH}});
    let (attempts, _) = Bench::new(&[&["ok"]]).with("/environment", require).run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
}

/// Two arms at one point with the same command; the second is the null arm.
fn with_null_arm(mut bench: Bench) -> Bench {
    bench.wave["arms"] = json!([{"name": "loop", "baseline": true}, {"name": "null", "baseline": false, "null": true}]);
    bench.wave["cells"][1]["arm"] = json!(1);
    bench
}

fn the_null_arm_runs_a_copy_of_the_program() {
    let mut bench = with_null_arm(Bench::new(&[&["place"], &["place"]]));
    bench.wave["blocks"][0]["order"] = json!([0, 1, 1, 0]);
    for cell in 0..2 {
        let file = bench.text(&format!("place-{cell}.json"));
        bench.wave["cells"][cell]["argv"].as_array_mut().expect("a list").push(json!(file));
    }
    let (attempts, _) = bench.run();
    let place = |cell: usize| -> (String, String) {
        serde_json::from_slice(&fs::read(bench.path(&format!("place-{cell}.json"))).expect("written")).expect("JSON")
    };
    let own = std::env::current_exe().expect("own path").display().to_string();
    assert_eq!(place(0), (own.clone(), own.clone()), "the baseline runs the program itself");
    let (copy, called) = place(1);
    assert_ne!(copy, own);
    assert_eq!(called, own, "it is called by the name that the plan gives it");
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
        assert_eq!(attempt.argv[0], own);
        let recorded =
            attempt.environment.soft.get("nullProgram").map(|path| serde_json::to_value(path).expect("JSON"));
        assert_eq!(recorded, (attempt.arm == "null").then(|| json!(copy)));
        assert_eq!(attempt.environment.hard, attempts[0].environment.hard, "the arms can be compared");
    }
    assert!(!Path::new(&copy).exists(), "the copy vanishes with the block");
    let others = fs::read_dir(bench.path("out")).expect("a folder").count();
    assert_eq!(others, attempts.len(), "nothing but attempts is left beside them");
}

fn a_program_that_cannot_be_copied_is_not_run_by_the_null_arm() {
    let mut bench = with_null_arm(Bench::new(&[&["ok"], &["ok"]]));
    // A folder cannot be read as a file, not even by root.
    bench.wave["cells"][1]["argv"][0] = json!(bench.text(""));
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_message(&attempts[1], Outcome::NotStarted, &["cannot copy", "for the null arm"]);
}

fn attempts_have_the_adjacent_probes() {
    let mut bench = Bench::new(&[&["ok"], &["memory", "40"], &["ok"]]);
    bench.wave["blocks"][0]["order"] = json!([0, 0, 1, 1, 0, 0]);
    let (attempts, _) = bench.run();
    for attempt in &attempts {
        for window in [&attempt.noise.before, &attempt.noise.after] {
            assert!(window.canary_seconds.is_some() && window.canary_bytes.is_some(), "{window:?}");
            assert!(window.spin_seconds.is_some() && window.timer_lateness_seconds.is_some(), "{window:?}");
        }
    }
    for pair in attempts.windows(2) {
        let (after, before) = (&pair[0].noise.after, &pair[1].noise.before);
        assert_eq!(after.spin_seconds, before.spin_seconds, "the probe after a trial is the probe before the next");
        if after.canary_bytes == before.canary_bytes {
            assert_eq!(after.canary_seconds, before.canary_seconds);
        }
    }
    let first = &attempts[0].noise.before;
    assert!(first.read_bandwidth_bytes_per_second.is_some(), "before the first trial there is time for a long probe");
    // A single reading may be equal twice, to the nanosecond.
    let readings = |window: &NoiseWindow| (window.spin_seconds, window.timer_lateness_seconds);
    assert!(attempts[1..].iter().all(|attempt| readings(&attempt.noise.before) != readings(first)), "read anew");
}

fn canary_covers_the_trials_footprint() {
    let (attempts, _) = {
        let mut bench = Bench::new(&[&["ok"], &["memory", "300"]]);
        bench.wave["blocks"][0]["order"] = json!([0, 1, 0, 1]);
        bench.run()
    };
    let bytes = |i: usize| {
        let noise = &attempts[i].noise;
        (noise.before.canary_bytes.expect("read"), noise.after.canary_bytes.expect("read"))
    };
    let (unknown, small) = bytes(0);
    let (_, large) = bytes(1);
    assert_eq!(bytes(1).0, unknown, "of the second cell nothing is known either");
    assert_eq!(unknown, large, "an unknown footprint counts as large");
    assert!(small < large, "{small} {large}");
    assert_eq!(bytes(2), (small, small));
    assert_eq!(bytes(3), (large, large));
}

fn a_short_trial_has_shares_of_cpu_time_too() {
    let mut bench = Bench::new(&[&["ok"]]);
    bench.wave["blocks"][0]["order"] = json!(vec![0; 40]);
    let (attempts, _) = bench.run();
    let during = &attempts.last().expect("attempts").noise.during;
    let window = during.window_seconds.expect("read");
    let shares = during.shares_window_seconds.unwrap_or(window);
    assert!(shares >= 0.2 && shares >= window, "{during:?}");
    assert!(during.other_work_ratio.is_some() && during.steal_ratio.is_some(), "{during:?}");
}

fn address_space_layout_stays_random() {
    let bench = Bench::new(&[&["ok"]]);
    let (attempts, _) = bench.run();
    let machine = fs::read_to_string("/proc/sys/kernel/randomize_va_space").expect("readable");
    let recorded = serde_json::to_value(&attempts[0].environment.hard["aslr"]).expect("JSON");
    assert_eq!(recorded, json!(machine.trim()));

    // ASLR must not only be enabled on the machine; the runner must not disable it for its children.
    let mut bench = Bench::new(&[&["layout"]]);
    let file = bench.text("layout");
    bench.wave["cells"][0]["argv"].as_array_mut().expect("a list").push(json!(file));
    bench.run();
    assert_eq!(
        fs::read_to_string(&file).expect("written"),
        own_personality(),
        "unchanged from the parent of the runner"
    );
}

/// The kernel's execution domain of this process; 0040000 would disable ASLR.
fn own_personality() -> String {
    fs::read_to_string("/proc/self/personality").expect("readable")
}

fn probe_prints_what_a_block_would_record() {
    let output = Command::new(env!("CARGO_BIN_EXE_assay-runner")).arg("probe").output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let survey: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(survey["schema"], "assay.dev/survey/v1alpha1");
    let environment: assay_schema::attempt::Environment =
        serde_json::from_value(survey["environment"].clone()).expect("as in an attempt");
    let (attempts, _) = Bench::new(&[&["ok"]]).run();
    assert_eq!(environment.hard, attempts[0].environment.hard);
    assert_eq!(survey["isolation"]["level"], json!(attempts[0].isolation.level));
    assert!(survey["noise"]["otherWorkRatio"].is_number() && survey["noise"]["canarySeconds"].is_number(), "{survey}");
}

fn the_bench_prints_its_figures() {
    let bench = |trials: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay-runner"));
        command.args(["bench", "--trials", trials]).output().expect("it starts")
    };
    let output = bench("100");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["figure"].as_str().expect("a name")).collect();
    assert_eq!(names, ["trial.overhead_ms", "trial.overhead_p99_ms"]);
    for line in lines {
        assert_eq!((&line["unit"], &line["samples"]), (&json!("ms"), &json!(100)));
        assert!(line["value"].as_f64().is_some_and(|millis| millis > 0.0), "{line}");
    }
    assert!(stderr(&output).contains("102 succeeded"), "{}", stderr(&output));
    assert_eq!(bench("99").status.code(), Some(2), "too few for a figure");
}
