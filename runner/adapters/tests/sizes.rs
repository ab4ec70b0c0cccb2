//! Outputs of the maximum size are read within limits of time and memory.

use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use assay_adapters::{Source, convert};
use assay_schema::wave::{Format, MetricSource, Output};

/// The runner's limit on output size.
const LARGEST: usize = 8 << 20;
const PATIENCE: Duration = Duration::from_secs(8);

fn read(format: Format, text: String) -> bool {
    read_for(vec![MetricSource { name: "figure".into(), unit: "s".into(), ..MetricSource::default() }], format, text)
}

fn read_for(metrics: Vec<MetricSource>, format: Format, text: String) -> bool {
    assert!(text.len() <= LARGEST, "{}", text.len());
    let output = Output { format, path: None, metrics: Some(metrics), csv: None, json: None };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let sources = [Source { name: "standard output".into(), bytes: text.into_bytes() }];
        let _ = convert(&output, &sources);
        let _ = tell.send(());
    });
    told.recv_timeout(PATIENCE).is_ok()
}

/// Repeats a piece `count` times, each with its number.
fn many(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

fn no_output_takes_more_time_than_its_size() {
    let event = |output: &str| format!("{{\"Action\":\"output\",\"Output\":\"{output}\"}}\n");
    let xml = |content: String| format!("<Catch>{content}</Catch>");
    let entry = format!(r#"{{"name": "a"{}}}"#, many(250_000, |i| format!(r#","{i:x}":1"#)));
    for (what, format, text) in [
        ("columns of a table", Format::Csv, many(1_000_000, |i| format!("{i:x},"))),
        ("lines of an event", Format::GoBench, event(&r"\n".repeat(4_000_000))),
        ("events of a line", Format::GoBench, event(&"a".repeat(4 << 20)) + &event("a").repeat(100_000)),
        ("names", Format::GoBench, many(390_000, |i| format!("Benchmark{:04} 1 1 s\n", i.min(9_999)))),
        ("figures of a line", Format::GoBench, format!("Benchmark 1{}\n", many(600_000, |i| format!(" 1 {i:x}")))),
        ("elements", Format::Catch2, xml(" ".repeat(8_000_000) + &"<BenchmarkResults/>".repeat(10_000))),
        ("elements in each other", Format::Catch2, {
            xml("<a>".repeat(1_000_000) + &"<BenchmarkResults/>".repeat(10_000) + &"</a>".repeat(1_000_000))
        }),
        ("attributes of an element", Format::Catch2, xml(format!("<a {}/>", many(600_000, |i| format!(" a{i:x}=''"))))),
        ("namespaces", Format::Catch2, {
            xml(many(60_000, |i| format!("<a xmlns:a{i:x}='{i:x}'>")) + &"</a>".repeat(60_000))
        }),
        ("figures", Format::Sysbench, "Threads started!\n".to_owned() + &many(600_000, |i| format!("{i:x}: 1\n"))),
        ("figures of repetitions", Format::GoogleBenchmark, format!(r#"{{"benchmarks": [{entry},{entry}]}}"#)),
    ] {
        assert!(read(format, text), "{what}");
    }
}

/// Memory use depends on the size of the output, not on how often one part of it is referenced.
fn shared_names_do_not_multiply_memory() {
    let long = "a".repeat(1 << 20);
    let json = |count| many(count, |i| format!(r#","{i:x}":1"#));
    let row = "   ├─ a  1 ns │ 1 ns │ 1 ns │ 1 ns │ 1 │ 1\n";
    let divan = format!("{long}  fastest │ slowest │ median │ mean │ samples │ iters\n╰─ {long} │ │ │ │ │\n");
    let go = format!("pkg: {long}\n{}", many(100_000, |i| format!("Benchmark{i} 1 1 s\n")));
    let catch = format!("<Catch><TestCase name='{long}'>{}</TestCase></Catch>", "<BenchmarkResults/>".repeat(200_000));
    let fio = format!(r#"{{"jobs": [{{"jobname": "a", "read": {{"{long}": {{"a": 1{}}}}}}}]}}"#, json(100_000));
    let jmh = format!(
        r#"[{{"benchmark": "x", "mode": "y", "primaryMetric": {{}}, "secondaryMetrics":
            {{"{long}": {{"scoreUnit": "{long}", "scorePercentiles": {{"a": 1{}}}}}}}}}]"#,
        json(100_000)
    );
    for (what, format, text) in [
        ("a name above names", Format::Divan, divan.clone() + &row.repeat(100_000)),
        (
            "a heading above figures",
            Format::Divan,
            format!("{divan}{row}   │ {long}: │ │ │ │ │\n{}", {
                "   │ 1 │ 1 │ 1 │ 1 │ │\n".repeat(100_000)
            }),
        ),
        ("a package of names", Format::GoBench, go),
        ("a test case of benchmarks", Format::Catch2, catch),
        ("a path of figures", Format::Fio, fio),
        ("a name and a unit of percentiles", Format::Jmh, jmh),
    ] {
        assert_room(512, what, || read(format, text));
    }
    let choice = |i| MetricSource {
        name: format!("figure{i}"),
        unit: "s".into(),
        benchmark: Some(format!("{i:x}=1")),
        field: Some("0".into()),
        ..MetricSource::default()
    };
    let header: Vec<String> = (0..100).map(|i| format!("{i:x}")).collect();
    let table = header.join(",") + "\n" + &(vec!["1"; 100].join(",") + "\n").repeat(40_000);
    assert_room(128, "choices of rows", || read_for((0..32).map(choice).collect(), Format::Csv, table));
}

/// Asserts that the process's peak memory grows by at most `most` MiB.
fn assert_room(most: u64, what: &str, read: impl FnOnce() -> bool) {
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").expect("there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.split_whitespace().next().expect("a number").parse::<u64>().expect("KiB")
    };
    fs::write("/proc/self/clear_refs", "5").expect("the peak is forgotten");
    let before = peak();
    assert!(read(), "{what}");
    let grown = peak().saturating_sub(before);
    assert!(grown < most << 10, "{what}: {grown} KiB");
}

fn figures_that_nobody_asks_for_take_no_room() {
    let figures = r#"{"scoreUnit": "s/op", "rawDataHistogram": [[[[1, 100000]]]]}"#;
    let others: Vec<String> = (0..500).map(|i| format!(r#""m{i}": {figures}"#)).collect();
    let others = others.join(",");
    let entry = format!(
        r#"[{{"benchmark": "x", "mode": "sample", "primaryMetric": {figures}, "secondaryMetrics": {{{others}}}}}]"#
    );
    assert_room(64, "40 kB of text", || read(Format::Jmh, entry));
}

/// Sequential, because the peak is per process.
#[test]
fn outputs_of_maximum_size_are_read_in_bounded_time_and_memory() {
    figures_that_nobody_asks_for_take_no_room();
    shared_names_do_not_multiply_memory();
    no_output_takes_more_time_than_its_size();
}
