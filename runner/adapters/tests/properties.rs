//! Adapters accept arbitrary bytes without a panic, and read back exactly the figures that a tool writes.

use std::fs;
use std::path::Path;

use assay_adapters::{Source, convert};
use assay_schema::result::Reading;
use assay_schema::wave::{Format, MetricSource, Output};
use proptest::prelude::*;

const FORMATS: [(Format, &str); 23] = [
    (Format::GoBench, "go-1.26.8.txt"),
    (Format::GoBench, "go-1.26.8.json"),
    (Format::Criterion, "criterion-0.8.2-bencher.txt"),
    (Format::GoogleBenchmark, "google-benchmark-1.7.1.json"),
    (Format::Hyperfine, "hyperfine-1.20.0.json"),
    (Format::PytestBenchmark, "pytest-benchmark-5.3.1.json"),
    (Format::K6, "k6-1.8.1-summary-export.json"),
    (Format::Csv, "table.csv"),
    (Format::Jmh, "jmh-1.37.json"),
    (Format::Jmh, "jmh-1.37-sample-time.json"),
    (Format::BenchmarkDotNet, "benchmarkdotnet-documented.json"),
    (Format::Fio, "fio-3.33-two-jobs.json"),
    (Format::Wrk, "wrk-4.1.0-socket-errors.txt"),
    (Format::Sysbench, "sysbench-1.0.20-memory.txt"),
    (Format::Sysbench, "sysbench-1.0.20-fileio.txt"),
    (Format::Divan, "divan-0.1.21.txt"),
    (Format::Catch2, "catch2-2.13.10.xml"),
    (Format::Iperf3, "iperf3-3.12.json"),
    (Format::Pgbench, "pgbench-15.18-two-scripts.txt"),
    (Format::Vegeta, "vegeta-12.13.0.json"),
    (Format::Oha, "oha-1.16.0-documented.json"),
    (Format::AIPerf, "aiperf-0.14-documented.json"),
    (Format::Json, "vegeta-12.13.0.json"),
];

/// A format, its fixture, a benchmark and a field in it, and the field's unit.
type Whole = (Format, &'static str, Option<&'static str>, Option<&'static str>, &'static str);

/// Outputs with a detectable end, each with a figure of its last lines.
const WHOLE: [Whole; 21] = [
    (Format::GoBench, "go-1.26.8.txt", Some("BenchmarkJoin/way=builder"), Some("allocs/op"), "1"),
    (Format::GoBench, "go-1.26.8-two-packages.txt", Some("example.com/two/b.BenchmarkSum"), None, "s"),
    (Format::GoBench, "go-1.26.8.json", Some("BenchmarkJoin/way=plus"), None, "s"),
    (Format::Criterion, "criterion-0.8.2-bencher.txt", Some("find/binary"), None, "s"),
    (Format::GoogleBenchmark, "google-benchmark-1.7.1.json", Some("BM_List/65536"), None, "s"),
    (Format::Hyperfine, "hyperfine-1.20.0.json", Some("gzip -9 -c numbers.txt"), None, "s"),
    (Format::PytestBenchmark, "pytest-benchmark-5.3.1.json", Some("test_lookup[set]"), None, "s"),
    (Format::K6, "k6-1.8.1-summary-export.json", Some("http_reqs"), Some("rate"), "1/s"),
    (Format::Iperf3, "iperf3-3.12.json", None, Some("cpu_utilization_percent.remote_system"), "1"),
    (Format::Pgbench, "pgbench-15.18.txt", None, None, "1/s"),
    (Format::Vegeta, "vegeta-12.13.0.json", None, Some("success"), "1"),
    (Format::Oha, "oha-1.16.0-documented.json", None, Some("details.firstByte.slowest"), "s"),
    (Format::AIPerf, "aiperf-0.14-documented.json", Some("request_count"), None, "requests"),
    (Format::Jmh, "jmh-1.37.json", Some("example.Sorting.sort:numbers=4000"), Some("gc.time"), "s"),
    (Format::BenchmarkDotNet, "benchmarkdotnet-documented.json", Some("Example.Lookups.Set(Count: 1000)"), None, "s"),
    (Format::Fio, "fio-3.33-two-jobs.json", Some("b"), Some("clat_ns.mean"), "s"),
    (Format::Wrk, "wrk-4.1.0-script.txt", None, Some("Transfer/sec"), "By/s"),
    (Format::Sysbench, "sysbench-1.0.20-cpu.txt", None, Some("execution time stddev"), "s"),
    (Format::Divan, "divan-0.1.21-one.txt", None, Some("mean alloc bytes"), "By"),
    (Format::Divan, "divan-0.1.21.txt", Some("collect"), None, "s"),
    (Format::Catch2, "catch2-2.13.10.xml", Some("std::stable_sort <1000>"), Some("high standard deviation"), "s"),
];

/// Formats whose outputs may end after any line, and the test of a document with a path.
const ENDLESS: [Format; 2] = [Format::Csv, Format::Json];

#[test]
fn every_format_of_a_tool_has_its_rows_here() {
    for format in Format::ALL.iter().filter(|format| !matches!(format, Format::AssayResult | Format::None)) {
        assert!(FORMATS.iter().any(|(known, _)| known == format), "{format:?} has no row in FORMATS");
        let whole = WHOLE.iter().any(|(known, ..)| known == format);
        assert!(whole != ENDLESS.contains(format), "{format:?} has no row in WHOLE and none in ENDLESS, or both");
    }
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).expect("a fixture")
}

fn output(format: Format, benchmark: Option<&str>, field: Option<&str>, unit: &str) -> Output {
    let metric = MetricSource {
        name: "figure".into(),
        unit: unit.into(),
        benchmark: benchmark.map(str::to_owned),
        field: field.map(str::to_owned),
        // Columns and documents do not state units.
        field_unit: (benchmark.is_none() && matches!(format, Format::Csv | Format::Json)).then(|| unit.to_owned()),
        path: (format == Format::Json).then(|| "$.a".to_owned()),
    };
    Output { format, path: None, metrics: Some(vec![metric]), csv: None, json: None }
}

/// Reads any input. Only a result that violates the schema or an empty error message fails.
fn any_answer(format: Format, name: &str, bytes: Vec<u8>) {
    let sources = [Source { name: name.into(), bytes }];
    for (benchmark, field) in
        [(None, None), (Some("a=1"), Some("mean")), (Some("BenchmarkJoin/way=plus"), Some("p(95)"))]
    {
        for unit in ["s", "By", "rows/s"] {
            match convert(&output(format, benchmark, field, unit), &sources) {
                Ok(result) => {
                    let written = serde_json::to_vec(&result).expect("JSON");
                    assert_eq!(assay_schema::read(&written), Ok(result), "a result by the schema");
                }
                Err(fault) => assert!(fault.to_string().len() > 10, "{fault}"),
            }
        }
    }
}

/// Writes one figure in the tool's format and reads it back.
fn through(format: Format, text: String, benchmark: Option<&str>, field: Option<&str>, unit: &str) -> f64 {
    let sources = [Source { name: "standard output".into(), bytes: text.into_bytes() }];
    let result = convert(&output(format, benchmark, field, unit), &sources).expect("a good output");
    match &result.metrics["figure"].reading {
        Reading::Value(value) => *value,
        Reading::Samples(samples) => samples[0],
        Reading::Histogram(_) => panic!("no adapter makes a histogram"),
    }
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        -1e12..1e12f64,
        proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL,
        (0u64..1 << 53).prop_map(|whole| whole as f64),
    ]
    // A printed time of 0 has no value.
    .prop_map(|figure| if figure.is_finite() && figure != 0.0 { figure } else { 0.5 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), folder in any::<bool>()) {
        for &format in Format::ALL {
            any_answer(format, if folder { "a/new/sample.json" } else { "standard output" }, bytes.clone());
        }
    }

    #[test]
    fn mutated_outputs_do_not_panic(which in 0..FORMATS.len(), at in any::<prop::sample::Index>(),
                                       cut in any::<bool>(), byte in any::<u8>()) {
        let (format, name) = FORMATS[which];
        let mut bytes = fixture(name);
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        any_answer(format, "standard output", bytes);
    }

    /// A truncated output is rejected or reads like the complete one. No figure is read as a prefix of itself.
    #[test]
    fn truncated_outputs_are_rejected_or_read_alike(which in 0..WHOLE.len(), at in any::<prop::sample::Index>()) {
        let (format, name, benchmark, field, unit) = WHOLE[which];
        let whole = fixture(name);
        let read = |bytes: &[u8]| {
            let sources = [Source { name: "standard output".into(), bytes: bytes.to_vec() }];
            convert(&output(format, benchmark, field, unit), &sources).map(|result| result.metrics)
        };
        let expected = read(&whole).expect("a good output");
        if let Ok(metrics) = read(&whole[..at.index(whole.len())]) {
            prop_assert_eq!(metrics, expected);
        }
    }

    #[test]
    fn figures_round_trip(figure in figure()) {
        let go = format!("BenchmarkX-2 \t 100\t {figure:?} ns/op\t {figure:?} rows\nPASS\n");
        prop_assert_eq!(through(Format::GoBench, go.clone(), None, Some("rows"), "rows"), figure);
        prop_assert_eq!(through(Format::GoBench, go, None, None, "s"), figure / 1e9);
        let json = serde_json::to_string(&figure).expect("a number");
        let hyperfine = format!(r#"{{"results": [{{"command": "x", "times": [{json}]}}]}}"#);
        prop_assert_eq!(through(Format::Hyperfine, hyperfine, None, None, "s"), figure);
        let google = format!(r#"{{"benchmarks": [{{"name": "x", "real_time": {json}, "time_unit": "us"}}]}}"#);
        prop_assert_eq!(through(Format::GoogleBenchmark, google, None, None, "s"), figure / 1e6);
        let pytest = format!(r#"{{"benchmarks": [{{"name": "x", "stats": {{"data": [{json}]}}}}]}}"#);
        prop_assert_eq!(through(Format::PytestBenchmark, pytest, None, None, "s"), figure);
        let k6 = format!(r#"{{"metrics": {{"http_req_duration": {{"med": {json}}}}}}}"#);
        prop_assert_eq!(through(Format::K6, k6, None, Some("med"), "s"), figure / 1e3);
        let jmh = |unit: &str| {
            let metric = format!(r#"{{"scoreUnit": "{unit}", "rawData": [[{json}]]}}"#);
            format!(r#"[{{"benchmark": "x", "mode": "avgt", "primaryMetric": {metric}}}]"#)
        };
        prop_assert_eq!(through(Format::Jmh, jmh("us/op"), None, None, "s"), figure / 1e6);
        prop_assert_eq!(through(Format::Jmh, jmh("ops/s"), None, None, "sorts/s"), figure);
        let dotnet = format!(r#"{{"Benchmarks": [{{"FullName": "x", "Statistics": {{"OriginalValues": [{json}]}}}}]}}"#);
        prop_assert_eq!(through(Format::BenchmarkDotNet, dotnet, None, None, "s"), figure / 1e9);
        let fio = format!(r#"{{"jobs": [{{"jobname": "x", "read": {{"total_ios": 1, "lat_ns": {{"mean": {json}}}}}}}]}}"#);
        prop_assert_eq!(through(Format::Fio, fio, None, Some("lat_ns.mean"), "s"), figure / 1e9);
        // wrk does not print exponents.
        let wrk = format!(
            "Running 1s test @ u\n  1 requests in 1.00s, 1.00B read\nRequests/sec: {figure}\nTransfer/sec: 1.00B\n"
        );
        prop_assert_eq!(through(Format::Wrk, wrk, None, None, "1/s"), figure);
        let sysbench = format!(
            "Threads started!\nLatency (ms):\n  avg: {figure:?}\nThreads fairness:\n  execution time (avg/stddev): 1.0/0.0\n"
        );
        prop_assert_eq!(through(Format::Sysbench, sysbench, None, Some("avg"), "s"), figure / 1e3);
        let divan = format!(
            "p     fastest │ slowest │ median │ mean │ samples │ iters\n╰─ x  1 ns │ 1 ns │ {figure:?} ns │ 1 ns │ 1 │ 1\n\n"
        );
        prop_assert_eq!(through(Format::Divan, divan, None, None, "s"), figure / 1e9);
        let catch2 = format!(
            r#"<Catch><BenchmarkResults name="x"><mean value="{figure:?}" ci="0.95"/></BenchmarkResults></Catch>"#
        );
        prop_assert_eq!(through(Format::Catch2, catch2, None, None, "s"), figure / 1e9);
        let document = format!(r#"{{"b": NaN, "a": {json}}}"#);
        prop_assert_eq!(through(Format::Json, document, None, None, "s"), figure);
        let iperf3 = format!(r#"{{"end": {{"sum": {{"bytes": 1, "jitter_ms": {json}}}}}}}"#);
        prop_assert_eq!(through(Format::Iperf3, iperf3, None, Some("sum.jitter_ms"), "s"), figure / 1e3);
        let vegeta = format!(r#"{{"requests": 1, "success": 1, "latencies": {{"mean": {json}}}}}"#);
        prop_assert_eq!(through(Format::Vegeta, vegeta, None, None, "s"), figure / 1e9);
        let oha = format!(r#"{{"summary": {{"successRate": 1, "requestsPerSec": {json}}}}}"#);
        prop_assert_eq!(through(Format::Oha, oha, None, None, "1/s"), figure);
        let aiperf = format!(r#"{{"request_latency": {{"unit": "ms", "avg": {json}}}}}"#);
        prop_assert_eq!(through(Format::AIPerf, aiperf, None, None, "s"), figure / 1e3);
        let pgbench = format!(
            "transaction type: x\nnumber of transactions actually processed: 1\ntps = {figure} (without initial connection time)\n"
        );
        prop_assert_eq!(through(Format::Pgbench, pgbench, None, None, "1/s"), figure);
        let csv = format!("a,b\n{figure:?},1\n");
        prop_assert_eq!(through(Format::Csv, csv, None, Some("a"), "s"), figure);
    }
}
