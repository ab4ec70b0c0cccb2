//! An output of the largest size is read in little time and memory, whatever it holds.

use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use assay_adapters::{Source, convert};
use assay_schema::wave::{Format, MetricSource, Output};

/// As much as the runner takes.
const LARGEST: usize = 8 << 20;
const PATIENCE: Duration = Duration::from_secs(8);

fn read(format: Format, text: String) -> bool {
    assert!(text.len() <= LARGEST);
    let metric = MetricSource { name: "figure".into(), unit: "s".into(), ..MetricSource::default() };
    let output = Output { format, path: None, metrics: Some(vec![metric]) };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let sources = [Source { name: "standard output".into(), bytes: text.into_bytes() }];
        let _ = convert(&output, &sources);
        let _ = tell.send(());
    });
    told.recv_timeout(PATIENCE).is_ok()
}

fn no_output_takes_more_time_than_its_size() {
    let columns: Vec<String> = (0..1_000_000).map(|i| format!("{i:x}")).collect();
    let lines = format!(r#"{{"Action":"output","Output":"{}"}}"#, r"\n".repeat(4_000_000));
    for (what, format, text) in
        [("columns of a table", Format::Csv, columns.join(",")), ("lines of an event", Format::GoBench, lines)]
    {
        assert!(read(format, text), "{what}");
    }
}

fn figures_that_nobody_asks_for_take_no_room() {
    let figures = r#"{"scoreUnit": "s/op", "rawDataHistogram": [[[[1, 100000]]]]}"#;
    let others: Vec<String> = (0..500).map(|i| format!(r#""m{i}": {figures}"#)).collect();
    let others = others.join(",");
    let entry = format!(
        r#"[{{"benchmark": "x", "mode": "sample", "primaryMetric": {figures}, "secondaryMetrics": {{{others}}}}}]"#
    );
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").expect("there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.split_whitespace().next().expect("a number").parse::<u64>().expect("KiB")
    };
    let before = peak();
    assert!(read(Format::Jmh, entry));
    let grown = peak() - before;
    assert!(grown < 64 << 10, "{grown} KiB for 40 kB of text");
}

/// One after the other, since the peak is the process's.
#[test]
fn an_output_of_any_kind_is_read_in_little_time_and_memory() {
    figures_that_nobody_asks_for_take_no_room();
    no_output_takes_more_time_than_its_size();
}
