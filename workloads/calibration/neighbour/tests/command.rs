//! The built program.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn neighbour(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay-neighbour"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for the neighbour's `ready` and returns its further output.
fn ready(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("readable");
    assert_eq!(line, "ready\n");
    out
}

fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let after: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    (after[11].parse::<f64>().expect("user") + after[12].parse::<f64>().expect("system")) / 100.0
}

fn bytes_done(kind: &str, more: &[&str]) -> (u64, String) {
    let output =
        neighbour(&[&["--kind", kind, "--cpus", "0", "--seconds", "1"], more].concat()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let done = text.lines().nth(1).and_then(|line| line.split(' ').next()?.parse().ok()).expect("an amount");
    (done, text)
}

#[test]
fn neighbour_runs_for_the_given_time_and_reports_its_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let (rounds, text) = bytes_done("cpu", &[]);
    assert!(rounds > 0 && text.contains("arithmetic"), "{text}");
    let (bytes, text) = bytes_done("memory", &["--bytes", "8388608"]);
    assert!(bytes >= 8_388_608 && text.contains("memory"), "{text}");
    let (bytes, text) = bytes_done("disk", &["--bytes", "2097152", "--folder", &place]);
    assert!(bytes >= 1 << 20 && text.contains("disk"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("list").count(), 0, "no file is left");
}

#[test]
fn neighbour_uses_its_cpu() {
    let mut child = neighbour(&["--kind", "cpu", "--cpus", "0", "--seconds", "60"]).spawn().expect("it starts");
    let _out = ready(&mut child);
    let give_up = Instant::now() + Duration::from_secs(30);
    while cpu_seconds(child.id()) < 0.2 {
        assert!(Instant::now() < give_up, "it burns nothing");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

#[test]
fn neighbour_exits_with_its_parent() {
    let own = env!("CARGO_BIN_EXE_assay-neighbour");
    let script = format!("{own} --kind cpu --cpus 0 --seconds 600 & read line");
    let mut shell =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    let mut out = ready(&mut shell);
    shell.kill().expect("killed");
    shell.wait().expect("reaped");
    // The pipe closes when the process has exited.
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("readable");
    assert_eq!(rest, "", "it was killed and did not finish");
}

#[test]
fn invalid_parameters_are_rejected() {
    for arguments in [
        &["--kind", "cpu", "--cpus", "x", "--seconds", "1"][..],
        &["--kind", "cpu", "--cpus", "0", "--seconds", "0"],
        &["--kind", "cpu", "--cpus", "0", "--seconds", "3601"],
        &["--kind", "disk", "--cpus", "0", "--seconds", "1", "--folder", "/proc/nowhere"],
        &["--kind", "cpu", "--cpus", "1023", "--seconds", "1"],
    ] {
        let output = neighbour(arguments).output().expect("it starts");
        assert!(!output.status.success(), "{arguments:?}");
    }
}

#[test]
fn neighbour_reports_its_rounds() {
    let output =
        neighbour(&["--kind", "cpu", "--seconds", "1", "--rest", "1", "--rounds", "2"]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let spans: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| line.split_once(" from ")?.1.split_once(" to "))
        .map(|(from, to)| (from.parse().expect("a time"), to.parse().expect("a time")))
        .collect();
    assert_eq!(spans.len(), 2, "{text}");
    for (from, to) in &spans {
        assert!((1.0..30.0).contains(&(to - from)), "{text}");
    }
    assert!(spans[1].0 - spans[0].1 >= 0.999, "it rests in between: {text}");
}
