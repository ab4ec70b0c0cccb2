//! Steps around trials: their order, their failures, and the files they cannot reach.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use assay_schema::attempt::{Attempt, Outcome};
use serde_json::{Value, json};

use crate::{Bench, assert_message, stderr, wait_for};

/// Behaviours of trials, as text of a shell, with the outcome of each.
const WAYS: [(&str, Outcome); 7] = [
    ("exit 0", Outcome::Succeeded),
    ("exit 3", Outcome::Failed),
    ("kill -9 $$", Outcome::Failed),
    ("kill -SEGV $$", Outcome::Failed),
    ("sleep 60 & exit 0", Outcome::Succeeded),
    ("exit 0", Outcome::Succeeded),
    ("sleep 60", Outcome::TimedOut),
];

fn shell(text: &str) -> Value {
    json!(["/bin/sh", "-c", text])
}

/// A step that notes its kind and trial, as `trials` do.
fn noting(bench: &Bench, word: &str) -> String {
    format!("echo {word} $ASSAY_TRIAL >> {}", bench.text("notes"))
}

/// A bench whose trials note themselves and then behave in these ways.
fn bench(ways: &[&str]) -> Bench {
    let cells: Vec<&[&str]> = ways.iter().map(|_| &["ok"][..]).collect();
    let mut bench = Bench::new(&cells).with("/workload/output", json!({"format": "None"}));
    for (cell, way) in ways.iter().enumerate() {
        bench.wave["cells"][cell]["argv"] = shell(&format!("{}; {way}", noting(&bench, "trial")));
    }
    bench
}

/// Writes steps for the arms of a bench and returns their path.
fn steps(bench: &Bench, timeout: f64, more: &[(&str, Value)]) -> String {
    let mut cells = Vec::new();
    for arm in bench.wave["arms"].as_array().expect("arms") {
        let mut cell = json!({"point": "batchSize=8", "arm": arm["name"], "env": {"COLOUR": "red"}});
        for (kind, argv) in more {
            cell[kind] = argv.clone();
        }
        cells.push(cell);
    }
    let text = json!({"schema": "assay.dev/steps/v1alpha1", "timeoutSeconds": timeout, "cells": cells});
    fs::write(bench.path("steps.json"), text.to_string()).expect("written");
    bench.text("steps.json")
}

fn notes(bench: &Bench) -> Vec<String> {
    let text = fs::read_to_string(bench.path("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn run(bench: &Bench, steps: &str) -> Output {
    bench.command(&["--steps", steps]).output().expect("the runner starts")
}

/// Random plans of arms, the null arm included, and of trials that end in every way: each trial that was started has exactly one
/// prepare directly before it and one conclude directly after it.
pub(crate) fn every_trial_has_one_prepare_before_and_one_conclude_after_it() {
    let mut state = 57_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..3 {
        let ways: Vec<&str> = WAYS.iter().map(|(way, _)| *way).collect();
        let mut bench = bench(&ways).with(
            "/arms",
            json!([{"name": "old", "baseline": true}, {"name": "new", "baseline": false},
                {"name": "null", "baseline": false, "null": true}]),
        );
        for cell in 0..ways.len() {
            bench.wave["cells"][cell]["arm"] = json!(draw(3));
        }
        let hangs = WAYS.len() - 1;
        let mut order: Vec<usize> = (0..10).map(|_| draw(hangs)).collect();
        order.insert(draw(order.len()), hangs);
        bench.wave["blocks"][0]["warmup"] = json!([draw(hangs), draw(hangs)]);
        bench.wave["blocks"][0]["order"] = json!(order);
        bench.wave["workload"]["timeoutSeconds"] = json!(2);
        let much = "head -c 3000000 /dev/zero | tr '\\0' x";
        let around = steps(
            &bench,
            60.0,
            &[
                ("prepare", shell(&format!("{much}; {}", noting(&bench, "prepare")))),
                ("conclude", shell(&noting(&bench, "conclude"))),
            ],
        );
        let output = run(&bench, &around);
        assert!(output.status.success(), "{}", stderr(&output));
        let attempts: Vec<Attempt> = bench.attempts();
        assert_eq!(attempts.len(), 13);
        let mut expected = Vec::new();
        for attempt in &attempts {
            expected.push(format!("prepare {}", attempt.trial));
            // A trial that is killed at its time limit may not have come as far as its note.
            let note = format!("trial {}", attempt.trial);
            if attempt.outcome != Outcome::TimedOut || notes(&bench).contains(&note) {
                expected.push(note);
            }
            expected.push(format!("conclude {}", attempt.trial));
        }
        assert_eq!(notes(&bench), expected);
        let outcomes = attempts.iter().map(|attempt| attempt.outcome);
        assert!(outcomes.clone().any(|outcome| outcome == Outcome::TimedOut), "a trial hangs");
        for (attempt, cell) in attempts[2..].iter().zip(&order) {
            assert!(attempt.outcome == WAYS[*cell].1 || attempt.outcome == Outcome::TimedOut, "{attempt:?}");
        }
    }
}

pub(crate) fn failed_prepare_breaks_the_setup_and_never_fails_an_arm() {
    for (way, timeout, words) in [
        ("echo the disk is full >&2; exit 7", 60.0, "exited with code 7; the end of its output: the disk is full"),
        ("kill -9 $$", 60.0, "was terminated by signal 9 (SIGKILL)"),
        ("sleep 60", 0.2, "was killed after the timeout of 0.2 s"),
    ] {
        let bench = bench(&["exit 0"]).with("/blocks/0/order", json!([0, 0, 0]));
        let flag = bench.text("flag");
        let second = format!("{}; test -e {flag} || {{ touch {flag}; exit 0; }}; {way}", noting(&bench, "prepare"));
        let around =
            steps(&bench, timeout, &[("prepare", shell(&second)), ("conclude", shell(&noting(&bench, "conclude")))]);
        let output = run(&bench, &around);
        let (said, attempts) = (stderr(&output), bench.attempts());
        let last = said.lines().last().unwrap_or_default();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            last.starts_with(
                "the setup is broken: prepare of loop at batchSize=8, before trial w000-b0003-s00001 failed: "
            ),
            "{said}"
        );
        assert!(last.contains(words), "{said}");
        assert_eq!(attempts.len(), 2, "the block ends");
        assert_eq!(attempts[0].outcome, Outcome::Succeeded);
        assert_message(&attempts[1], Outcome::NotStarted, &["prepare of loop", words]);
        let noted: Vec<String> =
            notes(&bench).iter().map(|note| note.split(' ').next().unwrap_or("").to_owned()).collect();
        assert_eq!(noted, ["prepare", "trial", "conclude", "prepare"]);
    }
}

pub(crate) fn failed_conclude_keeps_its_trial_and_ends_the_block() {
    let bench = bench(&["exit 0"]).with("/blocks/0/order", json!([0, 0]));
    let around = steps(&bench, 60.0, &[("conclude", shell("exit 9"))]);
    let output = run(&bench, &around);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("the setup is broken: conclude of loop at batchSize=8, after trial w000-b0003-s00000 failed"),
        "{said}"
    );
    let attempts = bench.attempts();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].outcome, Outcome::Succeeded);
}

pub(crate) fn interrupted_trial_is_concluded() {
    let bench = bench(&["sleep 60"]);
    let around = steps(
        &bench,
        60.0,
        &[("conclude", shell(&format!("{}; sleep 0.2; {}", noting(&bench, "first"), noting(&bench, "conclude"))))],
    );
    let runner = bench.command(&["--steps", &around, "--finish-seconds", "0"]).spawn().expect("started");
    wait_for("the trial", || notes(&bench).first().cloned());
    let pid = rustix::process::Pid::from_child(&runner);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
    let output = runner.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(143), "{:?} {}", output.status.signal(), stderr(&output));
    assert_eq!(notes(&bench).len(), 3, "{:?}", notes(&bench));
    assert!(notes(&bench)[2].starts_with("conclude w000-b0003-s00000"));
    assert!(bench.attempts().is_empty(), "the trial has no record");
}

pub(crate) fn steps_of_the_run_have_the_variables_of_their_cell() {
    let bench = bench(&["exit 0"]);
    let around = steps(
        &bench,
        0.5,
        &[
            ("setup", shell(&format!("echo $COLOUR $OTHER $SECRET >> {}", bench.text("notes")))),
            ("cleanup", shell("echo gone >&2; exit 4")),
        ],
    );
    let ran = |kind: &str, cell: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay-runner"));
        command.args(["step", "--steps", &around, "--cell", cell, "--kind", kind]).env("SECRET", "s");
        command.stdin(Stdio::null()).output().expect("the runner starts")
    };
    assert!(ran("setup", "0").status.success());
    assert_eq!(notes(&bench), ["red"]);
    assert!(ran("prepare", "0").status.success(), "a step that is not there succeeds");
    let output = ran("cleanup", "0");
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("the setup is broken: cleanup of loop at batchSize=8 failed: "),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("exited with code 4; the end of its output: gone"), "{}", stderr(&output));
    let output = ran("setup", "1");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--cell 1: the steps have 1 cells"), "{}", stderr(&output));
}

pub(crate) fn invalid_steps_run_nothing() {
    let bench = bench(&["exit 0"]);
    for (argv, words) in [
        (json!([""]), "field cells[0].prepare[0]: the program's name is empty"),
        (json!(["/bin/true", "a\u{0}b"]), "field cells[0].prepare: it contains a NUL character"),
        (json!([]), "field cells[0].prepare: 0 entries"),
    ] {
        let output = run(&bench, &steps(&bench, 60.0, &[("prepare", argv)]));
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    for (source, words) in [
        ("fd:900", "was not started with this descriptor"),
        ("fd:1", "a number above 2"),
        ("/no/such", "cannot read /no/such"),
    ] {
        let output = run(&bench, source);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    assert!(notes(&bench).is_empty());
}
